// Two people talk; each is this program, or its sibling in another language.
//
//   conversation ADDRESS FOLDER HANDLE guest        waits to be spoken to
//   conversation ADDRESS FOLDER HANDLE host GUEST   begins
//   conversation ADDRESS FOLDER HANDLE again        comes back later and shows what it holds
//
// FOLDER keeps what outlives the program. Scripts/examples runs it all.
#include <iostream>
#include <thread>

#include "messenger.h"

namespace {

using Chats = chat::ChatService::Stub;
constexpr int count = 20;

std::string number(int n) { return "number " + std::to_string(n); }

// (chat, sequence, name) of the message with a text from somebody.
Row heard(Messenger& me, const std::string& what, const std::string& sender,
          const std::string& text) {
  return me.wait(what, "SELECT chat, sequence, name FROM message WHERE sender = ? AND text = ?",
                 {sender, text});
}

std::string create(Messenger& me, chat::ChatKind kind, const std::string& title,
                   const std::string& guest) {
  chat::CreateChatRequest request;
  request.set_request_id(new_id());
  request.mutable_chat()->set_kind(kind);
  request.mutable_chat()->set_title(title);
  request.add_members(guest);
  return me.call(&Chats::CreateChat, request).chat().name();
}

void host(Messenger& me, const std::string& guest_handle) {
  chat::SearchProfilesRequest search;
  search.set_query(guest_handle);
  const std::string guest = me.call(&Chats::SearchProfiles, search).profiles(0).user();
  const std::string direct = create(me, chat::CHAT_KIND_DIRECT, "", guest);
  const std::string group = create(me, chat::CHAT_KIND_GROUP, "Sunday", guest);

  // Typing is told to who listens now, and to nobody else: the guest says when.
  heard(me, "the guest's first word", guest, "I am here");
  chat::SendTypingRequest typing;
  typing.set_chat(direct);
  typing.set_state(chat::TYPING_STATE_TYPING);
  me.call(&Chats::SendTyping, typing);
  heard(me, "an answer to typing", guest, "you are typing");
  me.send(direct, "hola");
  const Row hola = heard(me, "the own message", me.user, "hola");
  me.wait("a reaction", "SELECT 1 FROM message WHERE name = ? AND reaction = '👍'", {hola[2]});
  me.wait("a reply", "SELECT 1 FROM message WHERE reply_to = ? AND text = 'hola, host'",
          {hola[2]});
  me.wait("a receipt", "SELECT 1 FROM marker WHERE chat = ? AND user = ? AND read >= 0 + ?",
          {direct, guest, hola[1]});
  std::cout << "heard reaction, reply and receipt" << std::endl;

  chat::EditMessageRequest edit;
  edit.set_name(hola[2]);
  edit.set_request_id(new_id());
  edit.mutable_content()->mutable_text()->set_text("¡hola!");
  me.call(&Chats::EditMessage, edit);
  me.send(direct, "oops");
  const Row slip = heard(me, "the slip", me.user, "oops");
  heard(me, "that the slip was seen", guest, "oops?");
  chat::DeleteMessagesRequest erase;
  erase.set_parent(direct);
  erase.set_request_id(new_id());
  erase.set_scope(chat::DELETE_SCOPE_FOR_EVERYONE);
  erase.add_ranges()->set_first_sequence(std::stol(slip[1]));
  erase.mutable_ranges(0)->set_last_sequence(std::stol(slip[1]));
  me.call(&Chats::DeleteMessages, erase);
  heard(me, "that edit and deletion were seen", guest, "I saw nothing");

  // A file, over a network that goes away in the middle.
  std::string file;
  for (int i = 0; i < 256 * 1500; ++i) file += static_cast<char>(i);
  const std::string upload = new_id();
  try {
    me.upload(file, "numbers.bin", upload, static_cast<long>(file.size() / 2));
  } catch (const CallFailed&) {
  }
  me.send(direct, "numbers", "", me.upload(file, "numbers.bin", upload));
  heard(me, "the file's digest", guest, "got " + hexadecimal(digest(file)));
  std::cout << "the file arrived" << std::endl;

  std::cout << "restart the server" << std::endl;
  for (int n = 1; n <= count; ++n) me.send(group, number(n));
  heard(me, "the count", guest, std::to_string(count) + " numbers");
  me.send(direct, "bye");
  heard(me, "good-bye", guest, "bye, host");
}

void guest(Messenger& me) {
  // A system message tells that there is a group.
  const std::string group = me.wait("a group", "SELECT chat FROM message WHERE sender = ''")[0];
  me.send(group, "I am here");
  me.wait_until("somebody to type", [&] { return !me.typing.empty(); });
  const std::string direct = me.typing[0].chat(), other = me.typing[0].user();
  me.send(direct, "you are typing");
  const Row hola = heard(me, "a greeting", other, "hola");
  chat::SetReactionRequest reaction;
  reaction.set_message(hola[2]);
  reaction.set_emoji("👍");
  me.call(&Chats::SetReaction, reaction);
  chat::MarkReadRequest mark;
  mark.set_chat(direct);
  mark.set_up_to_sequence(std::stol(hola[1]));
  me.call(&Chats::MarkRead, mark);
  me.send(direct, "hola, host", hola[2]);

  const Row slip = heard(me, "a slip", other, "oops");
  me.send(direct, "oops?");
  me.wait("an edit", "SELECT 1 FROM message WHERE name = ? AND text = '¡hola!'", {hola[2]});
  me.wait("a deletion", "SELECT 1 FROM message WHERE name = ? AND text = ''", {slip[2]});
  me.send(direct, "I saw nothing");

  const std::string file =
      me.wait("a file", "SELECT attachment FROM message WHERE attachment <> ''")[0];
  const std::string data = me.download(file);
  if (me.download(file, 1000, 500) != data.substr(1000, 500))
    throw std::runtime_error("a range is another");
  me.send(direct, "got " + hexadecimal(digest(data)));

  heard(me, "the last number", other, number(count));
  int next = 1;
  for (const auto& row : me.rows("SELECT text FROM message WHERE chat = ? AND text LIKE "
                                 "'number %' ORDER BY sequence", {group}))
    if (row[0] != number(next++))
      throw std::runtime_error("not each number once and in order: " + row[0]);
  me.send(direct, std::to_string(count) + " numbers");
  heard(me, "good-bye", other, "bye");
  me.send(direct, "bye, host");
  heard(me, "the own good-bye", me.user, "bye, host");
  const auto held = me.rows("SELECT name FROM message WHERE chat = ? ORDER BY sequence", {direct});
  const auto read = me.history(direct);
  if (held.size() != read.size()) throw std::runtime_error("the cache does not hold all");
  for (size_t i = 0; i < read.size(); ++i)
    if (held[i][0] != read[i].name()) throw std::runtime_error("the cache holds another message");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  const std::string role = argv[4];
  Messenger me(argv[1], argv[2], argv[3], "correct horse battery staple");
  std::thread follower;
  int code = 0;
  try {
    me.sign_in();
    std::cout << "signed in as " << me.user << std::endl;
    follower = std::thread([&] { me.follow(); });
    if (role == "host") {
      host(me, argv[5]);
    } else if (role == "guest") {
      guest(me);
    } else {
      me.wait_until("the end of what was missed", [&] { return me.caught_up; });
      std::cout << (me.resets ? "reset" : "resumed") << "\n";
      for (const auto& row :
           me.rows("SELECT chat, sequence, text FROM message ORDER BY chat, sequence"))
        std::cout << row[0] << "\t" << row[1] << "\t" << row[2] << "\n";
    }
    std::cout << "done" << std::endl;
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << std::endl;
    code = 1;
  }
  me.stop();
  if (follower.joinable()) follower.join();
  return code;
}
