// Counts what a program asks the allocator for. Preloaded, it prints the count at the end.
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static unsigned long count;

static void counted(void) { __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); }

void *malloc(size_t size) { return counted(), __libc_malloc(size); }
void *calloc(size_t items, size_t size) { return counted(), __libc_calloc(items, size); }
void *realloc(void *old, size_t size) { return counted(), __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) {
  return counted(), __libc_memalign(alignment, size);
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
  counted();
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : 12;
}

__attribute__((destructor)) static void report(void) { fprintf(stderr, "mallocs %lu\n", count); }
