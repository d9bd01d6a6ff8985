/* What the event loop needs of Linux and Swift's Glibc module leaves out.
 *
 * _GNU_SOURCE stays undefined: with it some types of <sys/select.h> differ from
 * those other modules see. The functions it would declare are declared here. */
#include <malloc.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int linux_accept(int fd, int flags) {
  return (int)syscall(SYS_accept4, fd, NULL, NULL, flags);
}

static inline int linux_set_thread_name(const char *name) {
  extern int pthread_setname_np(pthread_t, const char *);
  return pthread_setname_np(pthread_self(), name);
}

/* How many cores this process may run on; at least 1. */
static inline int linux_usable_cores(void) {
  unsigned long set[128] = {0};
  long bytes = syscall(SYS_sched_getaffinity, 0, sizeof set, set);
  int count = 0;
  for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof set[0]; i++)
    count += __builtin_popcountl(set[i]);
  return count > 0 ? count : 1;
}
