// The backend's services from C++: two people chat, one saves and queries
// records.
//
// usage: services_client ADDRESS; one line per check, exit code 0 when all passed.
#include "checks.h"
#include "vencejo/auth/v1/auth.grpc.pb.h"
#include "vencejo/chat/v1/chat.grpc.pb.h"
#include "vencejo/record/v1/record.grpc.pb.h"

namespace auth = vencejo::auth::v1;
namespace chat = vencejo::chat::v1;
namespace record = vencejo::record::v1;

namespace {

std::string unique(const std::string& start) { return start + std::to_string(now_micros()); }

// A UUID of version 7, from the clock and a counter: unique within this run.
std::string new_id() {
  static unsigned counter = 0;
  char made[48];
  const unsigned long long now = now_micros() / 1000;
  std::snprintf(made, sizeof made, "%08llx-%04llx-7%03x-8000-%012llx", now >> 16, now & 0xffff,
                ++counter & 0xfff, static_cast<unsigned long long>(now_micros()) & 0xffffffffffff);
  return made;
}

struct Person {
  std::shared_ptr<grpc::Channel> link;
  std::unique_ptr<auth::AuthService::Stub> auth_stub;
  std::unique_ptr<chat::ChatService::Stub> chat_stub;
  std::unique_ptr<record::RecordService::Stub> record_stub;
  std::string name, handle, token;

  explicit Person(const std::string& address)
      : link(channel(address)),
        auth_stub(auth::AuthService::NewStub(link)),
        chat_stub(chat::ChatService::NewStub(link)),
        record_stub(record::RecordService::NewStub(link)) {}

  std::unique_ptr<grpc::ClientContext> call() const {
    auto made = context();
    made->AddMetadata("authorization", "Bearer " + token);
    return made;
  }

  void sign_up(const std::string& wanted) {
    auth::SignUpRequest request;
    request.set_request_id(new_id());
    request.set_handle(wanted);
    request.set_password("correct horse battery staple");
    request.set_display_name(wanted);
    auth::SignUpResponse response;
    require_ok(auth_stub->SignUp(context().get(), request, &response), "sign up " + wanted);
    name = response.user().name();
    handle = wanted;
    token = response.tokens().access_token();
  }

  chat::SendMessageResponse send(const std::string& parent, const std::string& text,
                                 const std::string& id) const {
    chat::SendMessageRequest request;
    request.set_parent(parent);
    request.set_message_id(id);
    request.mutable_content()->mutable_text()->set_text(text);
    chat::SendMessageResponse response;
    require_ok(chat_stub->SendMessage(call().get(), request, &response), "send");
    return response;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: services_client ADDRESS\n");
    return 2;
  }
  Person ana(argv[1]), ben(argv[1]);
  std::string chat_name;

  check("two people sign up", [&] {
    ana.sign_up(unique("ana"));
    ben.sign_up(unique("ben"));
    auth::GetUserRequest request;
    request.set_name("users/me");
    auth::GetUserResponse response;
    require_ok(ana.auth_stub->GetUser(ana.call().get(), request, &response), "get user");
    require(response.user().name() == ana.name, "users/me is somebody else");
  });

  check("a call without a token is refused", [&] {
    auth::GetUserRequest request;
    request.set_name("users/me");
    auth::GetUserResponse response;
    require_code(ana.auth_stub->GetUser(context().get(), request, &response),
                 grpc::StatusCode::UNAUTHENTICATED, "get user");
  });

  check("messages go both ways, live", [&] {
    chat::CreateChatRequest create;
    create.set_request_id(new_id());
    create.mutable_chat()->set_kind(chat::CHAT_KIND_DIRECT);
    create.add_members(ben.name);
    chat::CreateChatResponse created;
    require_ok(ana.chat_stub->CreateChat(ana.call().get(), create, &created), "create");
    chat_name = created.chat().name();

    const auto call = ben.call();
    const auto stream = ben.chat_stub->Subscribe(call.get(), chat::SubscribeRequest());
    chat::SubscribeResponse frame;
    do require(stream->Read(&frame), "the stream ended before CaughtUp");
    while (!frame.has_caught_up());

    const auto id = new_id();
    const auto sent = ana.send(chat_name, "hola, ben", id);
    require(!sent.duplicate(), "a first send is no duplicate");
    const auto again = ana.send(chat_name, "hola, ben", id);
    require(again.duplicate() && again.message().sequence() == sent.message().sequence(),
            "a repeat is the same message");
    do require(stream->Read(&frame), "the stream ended before the message");
    while (!frame.has_message_created());
    require(frame.message_created().message().content().text().text() == "hola, ben",
            "another text came");
    call->TryCancel();
    while (stream->Read(&frame)) {
    }
    require_code(stream->Finish(), grpc::StatusCode::CANCELLED, "finish");

    ben.send(chat_name, "hola, ana", new_id());
    chat::ListMessagesRequest list;
    list.set_parent(chat_name);
    chat::ListMessagesResponse listed;
    require_ok(ana.chat_stub->ListMessages(ana.call().get(), list, &listed), "list");
    int texts = 0;
    for (const auto& message : listed.messages()) texts += message.content().has_text();
    require(texts == 2, "not both messages are listed");
  });

  check("unread counts and the marker", [&] {
    chat::GetChatRequest get;
    get.set_name(chat_name);
    chat::GetChatResponse got;
    require_ok(ana.chat_stub->GetChat(ana.call().get(), get, &got), "get");
    require(got.chat().unread().unread_count() == 1, "one is unread");
    chat::MarkReadRequest mark;
    mark.set_chat(chat_name);
    mark.set_up_to_sequence(got.chat().last_sequence());
    chat::MarkReadResponse marked;
    require_ok(ana.chat_stub->MarkRead(ana.call().get(), mark, &marked), "mark");
    require(marked.unread().unread_count() == 0, "none is unread");
  });

  check("records are saved and queried", [&] {
    const std::string database = "containers/" + unique("cpp") + "/databases/private";
    record::CreateZoneRequest create;
    create.set_parent(database);
    create.set_zone_id("work");
    record::CreateZoneResponse created;
    const auto status = ana.record_stub->CreateZone(ana.call().get(), create, &created);
    require_ok(status, "create zone");

    record::ModifyRecordsRequest modify;
    modify.set_parent(database);
    for (int i = 0; i < 5; ++i) {
      auto* saved = modify.add_operations()->mutable_save()->mutable_record();
      saved->set_name(created.zone().name() + "/records/n" + std::to_string(i));
      saved->set_record_type("Note");
      (*saved->mutable_fields())["n"].set_int64_value(i * 7 % 5);
      (*saved->mutable_fields())["title"].set_string_value("note " + std::to_string(i));
    }
    record::ModifyRecordsResponse modified;
    require_ok(ana.record_stub->ModifyRecords(ana.call().get(), modify, &modified), "modify");
    require(modified.complete() && modified.results_size() == 5, "not all were saved");

    record::QueryRecordsRequest query;
    query.set_parent(created.zone().name());
    query.mutable_query()->set_record_type("Note");
    auto* comparison = query.mutable_query()->mutable_predicate()->mutable_comparison();
    comparison->set_field("n");
    comparison->set_comparator(record::COMPARATOR_GREATER_THAN_OR_EQUAL);
    comparison->mutable_value()->set_int64_value(2);
    auto* sort = query.mutable_query()->add_sort();
    sort->set_field("n");
    sort->set_descending(true);
    record::QueryRecordsResponse found;
    require_ok(ana.record_stub->QueryRecords(ana.call().get(), query, &found), "query");
    require(found.records_size() == 3, "three match");
    for (int i = 0; i < 3; ++i)
      require(found.records(i).fields().at("n").int64_value() == 4 - i, "wrong order");
  });

  return failures == 0 ? 0 : 1;
}
