/* What SQLite itself needs for the rows of a message: a bare loop, for Scripts/bench/chat.
 *
 *   insert DATABASE CHAT_ID SENDER_ID MESSAGES BATCH EVENTS
 *
 * Inserts what a server's SendMessage inserts into a database of its own making: the message, its
 * words, and so many events; BATCH messages to a transaction, with synchronous=FULL. Prints
 * messages, seconds and the CPU's seconds. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static sqlite3 *database;

static void check(int code) {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
  fprintf(stderr, "%s\n", sqlite3_errmsg(database));
  exit(1);
}

static void run(const char *sql) { check(sqlite3_exec(database, sql, NULL, NULL, NULL)); }

static sqlite3_stmt *prepare(const char *sql) {
  sqlite3_stmt *statement;
  check(sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
  return statement;
}

static int64_t number(const char *sql) {
  sqlite3_stmt *statement = prepare(sql);
  sqlite3_step(statement);
  int64_t value = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return value;
}

static double seconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  if (argc != 7) return fprintf(stderr, "see the head of insert.c\n"), 64;
  static const char text[] = "the quick brown fox jumps over the lazy dog tonight";
  int64_t chat = atoll(argv[2]), sender = atoll(argv[3]);
  int messages = atoi(argv[4]), batch = atoi(argv[5]), events = atoi(argv[6]);
  check(sqlite3_open(argv[1], &database));
  run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
      "PRAGMA secure_delete = ON; PRAGMA cache_size = -32000; PRAGMA mmap_size = 268435456");
  int64_t position = number("SELECT last_position FROM log_state");
  char query[128];
  snprintf(query, sizeof query, "SELECT last_seq FROM chat WHERE chat_id = %lld", (long long)chat);
  int64_t sequence = number(query), now = (int64_t)time(NULL) * 1000000;
  sqlite3_stmt *message = prepare(
      "INSERT INTO message(chat_id, seq, uuid, sender_id, kind, body, content, reply_seq, sent_us,"
      " client_us, version, expire_us, forward_hops)"
      " VALUES (?, ?, ?, ?, 1, ?, NULL, NULL, ?, NULL, 1, NULL, 0)");
  sqlite3_stmt *event = prepare(
      "INSERT INTO event(pos, chat_id, zone_id, user_id, kind, keys, last, commit_us)"
      " VALUES (?, ?, NULL, ?, 10, ?, ?, ?)");
  double began = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (int done = 0; done < messages;) {
    run("BEGIN IMMEDIATE");
    for (int i = 0; i < batch && done < messages; i++, done++) {
      uint8_t id[16], keys[4] = {1, 2, 3, 4};
      if (getrandom(id, sizeof id, 0) != sizeof id) return 1;
      for (int j = 0; j < 6; j++) id[j] = (uint8_t)(now / 1000 >> (40 - 8 * j));
      sqlite3_bind_int64(message, 1, chat);
      sqlite3_bind_int64(message, 2, ++sequence);
      sqlite3_bind_blob(message, 3, id, sizeof id, SQLITE_STATIC);
      sqlite3_bind_int64(message, 4, sender);
      sqlite3_bind_text(message, 5, text, sizeof text - 1, SQLITE_STATIC);
      sqlite3_bind_int64(message, 6, now++);
      check(sqlite3_step(message));
      sqlite3_reset(message);
      for (int j = 0; j < events; j++) {
        sqlite3_bind_int64(event, 1, ++position);
        /* The first is the chat's, others the sender's own. */
        if (j == 0) sqlite3_bind_int64(event, 2, chat), sqlite3_bind_null(event, 3);
        else sqlite3_bind_null(event, 2), sqlite3_bind_int64(event, 3, sender);
        sqlite3_bind_blob(event, 4, keys, sizeof keys, SQLITE_STATIC);
        sqlite3_bind_int(event, 5, j == events - 1);
        sqlite3_bind_int64(event, 6, now);
        check(sqlite3_step(event));
        sqlite3_reset(event);
      }
    }
    run("COMMIT");
  }
  printf("%d %.6f %.6f\n", messages, seconds(CLOCK_MONOTONIC) - began,
         seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  snprintf(query, sizeof query, "UPDATE chat SET last_seq = %lld WHERE chat_id = %lld",
           (long long)sequence, (long long)chat);
  run(query);
  snprintf(query, sizeof query, "UPDATE log_state SET last_position = %lld", (long long)position);
  run(query);
  sqlite3_close(database);
  return 0;
}
