/* Two people talk; each is this program, or its sibling in another language.
 *
 *   conversation ADDRESS FOLDER HANDLE guest        waits to be spoken to
 *   conversation ADDRESS FOLDER HANDLE host GUEST   begins
 *   conversation ADDRESS FOLDER HANDLE again        comes back later and shows what it holds
 *
 * FOLDER keeps what outlives the program. Scripts/examples runs it all. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messenger.h"

enum { COUNT = 20, SIZE = 256 * 1500 };

static void must(struct messenger *m, int status, const char *what) {
  if (status) fail("%s: %d %s", what, status, m->reason);
}

/* The name of the message with a text from somebody. */
static char *heard(struct messenger *m, const char *what, const char *sender, const char *text) {
  return await(m, what, "SELECT name FROM message WHERE sender = ? AND text = ?", sender, text,
               NULL);
}

static char *sequence_of(struct messenger *m, const char *name) {
  return query(m, "SELECT sequence FROM message WHERE name = ?", name, NULL);
}

static char *create(struct messenger *m, Vencejo__Chat__V1__ChatKind kind, char *title,
                    char *guest) {
  char id[37];
  new_id(id);
  Vencejo__Chat__V1__Chat chat = VENCEJO__CHAT__V1__CHAT__INIT;
  chat.kind = kind;
  chat.title = title;
  Vencejo__Chat__V1__CreateChatRequest request = VENCEJO__CHAT__V1__CREATE_CHAT_REQUEST__INIT;
  request.request_id = id;
  request.chat = &chat;
  request.n_members = 1;
  request.members = &guest;
  Vencejo__Chat__V1__CreateChatResponse *response;
  must(m, messenger_call(m, "CreateChat", &request, &response), "create a chat");
  char *name = strdup(response->chat->name);
  vencejo__chat__v1__create_chat_response__free_unpacked(response, NULL);
  return name;
}

static void got(char text[80], const uint8_t *data, size_t length) {
  uint8_t sum[32];
  digest(data, length, sum);
  text += sprintf(text, "got ");
  for (int i = 0; i < 32; i++) text += sprintf(text, "%02x", sum[i]);
}

static void host(struct messenger *m, char *guest_handle) {
  Vencejo__Chat__V1__SearchProfilesRequest search = VENCEJO__CHAT__V1__SEARCH_PROFILES_REQUEST__INIT;
  search.query = guest_handle;
  Vencejo__Chat__V1__SearchProfilesResponse *found;
  must(m, messenger_call(m, "SearchProfiles", &search, &found), "search");
  if (!found->n_profiles) fail("nobody is called %s", guest_handle);
  char *guest = strdup(found->profiles[0]->user);
  vencejo__chat__v1__search_profiles_response__free_unpacked(found, NULL);
  char *direct = create(m, VENCEJO__CHAT__V1__CHAT_KIND__CHAT_KIND_DIRECT, "", guest);
  char *group = create(m, VENCEJO__CHAT__V1__CHAT_KIND__CHAT_KIND_GROUP, "Sunday", guest);

  /* Typing is told to who listens now, and to nobody else: the guest says when. */
  free(heard(m, "the guest's first word", guest, "I am here"));
  Vencejo__Chat__V1__SendTypingRequest typing = VENCEJO__CHAT__V1__SEND_TYPING_REQUEST__INIT;
  typing.chat = direct;
  typing.state = VENCEJO__CHAT__V1__TYPING_STATE__TYPING_STATE_TYPING;
  must(m, messenger_call(m, "SendTyping", &typing, NULL), "type");
  free(heard(m, "an answer to typing", guest, "you are typing"));
  messenger_send(m, direct, "hola", "", "");
  char *hola = heard(m, "the own message", m->user, "hola"), *sequence = sequence_of(m, hola);
  free(await(m, "a reaction", "SELECT 1 FROM message WHERE name = ? AND reaction = '👍'", hola,
             NULL));
  free(await(m, "a reply", "SELECT 1 FROM message WHERE reply_to = ? AND text = 'hola, host'", hola,
             NULL));
  free(await(m, "a receipt", "SELECT 1 FROM marker WHERE chat = ? AND user = ? AND read >= 0 + ?",
             direct, guest, sequence, NULL));
  puts("heard reaction, reply and receipt");

  char edit_id[37], delete_id[37];
  new_id(edit_id), new_id(delete_id);
  Vencejo__Chat__V1__TextContent text = VENCEJO__CHAT__V1__TEXT_CONTENT__INIT;
  text.text = "¡hola!";
  Vencejo__Chat__V1__MessageContent content = VENCEJO__CHAT__V1__MESSAGE_CONTENT__INIT;
  content.kind_case = VENCEJO__CHAT__V1__MESSAGE_CONTENT__KIND_TEXT;
  content.text = &text;
  Vencejo__Chat__V1__EditMessageRequest edit = VENCEJO__CHAT__V1__EDIT_MESSAGE_REQUEST__INIT;
  edit.name = hola;
  edit.request_id = edit_id;
  edit.content = &content;
  must(m, messenger_call(m, "EditMessage", &edit, NULL), "edit");
  messenger_send(m, direct, "oops", "", "");
  char *slip = heard(m, "the slip", m->user, "oops"), *place = sequence_of(m, slip);
  free(heard(m, "that the slip was seen", guest, "oops?"));
  Vencejo__Chat__V1__SequenceRange range = VENCEJO__CHAT__V1__SEQUENCE_RANGE__INIT,
                                   *ranges[] = {&range};
  range.first_sequence = range.last_sequence = atoll(place);
  Vencejo__Chat__V1__DeleteMessagesRequest erase = VENCEJO__CHAT__V1__DELETE_MESSAGES_REQUEST__INIT;
  erase.parent = direct;
  erase.request_id = delete_id;
  erase.scope = VENCEJO__CHAT__V1__DELETE_SCOPE__DELETE_SCOPE_FOR_EVERYONE;
  erase.n_ranges = 1;
  erase.ranges = ranges;
  must(m, messenger_call(m, "DeleteMessages", &erase, NULL), "delete");
  free(heard(m, "that edit and deletion were seen", guest, "I saw nothing"));

  /* A file, over a network that goes away in the middle. */
  uint8_t *file = malloc(SIZE);
  for (int i = 0; i < SIZE; i++) file[i] = (uint8_t)i;
  char upload[37], attachment[64], sum[80], line[40];
  new_id(upload);
  if (messenger_upload(m, file, SIZE, upload, SIZE / 2, attachment)) fail("it did not break");
  if (!messenger_upload(m, file, SIZE, upload, -1, attachment)) fail("upload: %s", m->reason);
  messenger_send(m, direct, "numbers", "", attachment);
  got(sum, file, SIZE);
  free(heard(m, "the file's digest", guest, sum));
  puts("the file arrived");

  puts("restart the server");
  for (int number = 1; number <= COUNT; number++) {
    sprintf(line, "number %d", number);
    messenger_send(m, group, line, "", "");
  }
  sprintf(line, "%d numbers", COUNT);
  free(heard(m, "the count", guest, line));
  messenger_send(m, direct, "bye", "", "");
  free(heard(m, "good-bye", guest, "bye, host"));
  free(guest), free(direct), free(group), free(hola), free(sequence), free(slip), free(place);
  free(file);
}

/* All messages of a chat, page by page from the newest; each must be in the cache. */
static void compare_history(struct messenger *m, char *chat) {
  char *token = strdup("");
  do {
    Vencejo__Chat__V1__ListMessagesRequest request = VENCEJO__CHAT__V1__LIST_MESSAGES_REQUEST__INIT;
    request.parent = chat;
    request.page_size = 20;
    request.page_token = token;
    Vencejo__Chat__V1__ListMessagesResponse *page;
    must(m, messenger_call(m, "ListMessages", &request, &page), "history");
    for (size_t i = 0; i < page->n_messages; i++) {
      char *held = sequence_of(m, page->messages[i]->name);
      if (!held) fail("the cache does not hold %s", page->messages[i]->name);
      free(held);
    }
    free(token);
    token = strdup(page->older_page_token);
    vencejo__chat__v1__list_messages_response__free_unpacked(page, NULL);
  } while (*token);
  free(token);
}

static void guest(struct messenger *m) {
  /* A system message tells that there is a group. */
  char *group = await(m, "a group", "SELECT chat FROM message WHERE sender = ''", NULL);
  messenger_send(m, group, "I am here", "", "");
  for (int64_t end = now_milliseconds() + 60000; !*m->typing_chat; messenger_run(m, 100))
    if (now_milliseconds() > end) fail("nobody typed");
  char *direct = strdup(m->typing_chat), *other = strdup(m->typing_user);
  messenger_send(m, direct, "you are typing", "", "");
  char *hola = heard(m, "a greeting", other, "hola"), *sequence = sequence_of(m, hola);
  Vencejo__Chat__V1__SetReactionRequest reaction = VENCEJO__CHAT__V1__SET_REACTION_REQUEST__INIT;
  reaction.message = hola;
  reaction.emoji = "👍";
  must(m, messenger_call(m, "SetReaction", &reaction, NULL), "react");
  Vencejo__Chat__V1__MarkReadRequest mark = VENCEJO__CHAT__V1__MARK_READ_REQUEST__INIT;
  mark.chat = direct;
  mark.up_to_sequence = atoll(sequence);
  must(m, messenger_call(m, "MarkRead", &mark, NULL), "mark");
  messenger_send(m, direct, "hola, host", hola, "");

  char *slip = heard(m, "a slip", other, "oops");
  messenger_send(m, direct, "oops?", "", "");
  free(await(m, "an edit", "SELECT 1 FROM message WHERE name = ? AND text = '¡hola!'", hola, NULL));
  free(await(m, "a deletion", "SELECT 1 FROM message WHERE name = ? AND text = ''", slip, NULL));
  messenger_send(m, direct, "I saw nothing", "", "");

  char *file = await(m, "a file", "SELECT attachment FROM message WHERE attachment <> ''", NULL);
  size_t length, part_length;
  uint8_t *data = messenger_download(m, file, 0, 0, &length);
  uint8_t *part = messenger_download(m, file, 1000, 500, &part_length);
  if (part_length != 500 || length < 1500 || memcmp(part, data + 1000, 500))
    fail("a range is another");
  char line[80];
  got(line, data, length);
  messenger_send(m, direct, line, "", "");

  sprintf(line, "number %d", COUNT);
  free(heard(m, "the last number", other, line));
  char wanted[COUNT * 16] = "", *numbers = query(
      m, "SELECT group_concat(text) FROM (SELECT text FROM message WHERE chat = ? AND "
         "text LIKE 'number %' ORDER BY sequence)", group, NULL);
  for (int number = 1; number <= COUNT; number++)
    sprintf(wanted + strlen(wanted), "%snumber %d", number > 1 ? "," : "", number);
  if (strcmp(numbers, wanted)) fail("not each number once and in order: %s", numbers);
  sprintf(line, "%d numbers", COUNT);
  messenger_send(m, direct, line, "", "");
  free(heard(m, "good-bye", other, "bye"));
  messenger_send(m, direct, "bye, host", "", "");
  free(heard(m, "the own good-bye", m->user, "bye, host"));
  compare_history(m, direct);
  free(group), free(direct), free(other), free(hola), free(sequence), free(slip), free(file);
  free(data), free(part), free(numbers);
}

static int show(void *context, int count, char **columns, char **names) {
  (void)context, (void)count, (void)names;
  printf("%s\t%s\t%s\n", columns[0], columns[1], columns[2]);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 5) return 64;
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct messenger m;
  messenger_open(&m, argv[1], argv[2], argv[3], "correct horse battery staple");
  messenger_sign_in(&m);
  printf("signed in as %s\n", m.user);
  if (!strcmp(argv[4], "host") && argc == 6) {
    host(&m, argv[5]);
  } else if (!strcmp(argv[4], "guest")) {
    guest(&m);
  } else {
    for (int64_t end = now_milliseconds() + 60000; !m.caught_up; messenger_run(&m, 100))
      if (now_milliseconds() > end) fail("never caught up");
    puts(m.resets ? "reset" : "resumed");
    sqlite3_exec(m.cache, "SELECT chat, sequence, text FROM message ORDER BY chat, sequence", show,
                 NULL, NULL);
  }
  puts("done");
  messenger_close(&m);
  return 0;
}
