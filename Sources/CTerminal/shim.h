// What libc has for terminals and the Glibc module leaves out.
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <wchar.h>

// <wchar.h> declares it for _XOPEN_SOURCE only.
extern int wcwidth(wchar_t c);

// <unistd.h> declares it for _GNU_SOURCE only.
extern int pipe2(int descriptors[2], int flags);
