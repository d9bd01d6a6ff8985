#include <sqlite3.h>

// SQLITE_TRANSIENT is a cast that Swift cannot import.
static inline int vencejo_bind_text(sqlite3_stmt *s, int i, const char *p, long long n) {
  return sqlite3_bind_text64(s, i, p ? p : "", (sqlite3_uint64)n, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static inline int vencejo_bind_blob(sqlite3_stmt *s, int i, const void *p, long long n) {
  // A null pointer would bind NULL; an empty blob is not NULL.
  return sqlite3_bind_blob64(s, i, p ? p : "", (sqlite3_uint64)n, SQLITE_TRANSIENT);
}
