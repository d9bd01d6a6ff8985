// calls.proto on gRPC C++: its callback API, which its authors advise for servers.
//
// usage: server PORT; prints `listening` and serves until SIGTERM.
#include <csignal>
#include <cstdio>
#include <string>

#include <grpcpp/grpcpp.h>

#include "calls.grpc.pb.h"

namespace pb = vencejo::calls::v1;
using Context = grpc::CallbackServerContext;
using grpc::Status;

namespace {

void copy(const pb::Item& from, pb::Item* to) {
  to->set_id(from.id());
  to->set_at(from.at());
  to->set_body(from.body());
}

class Serving final : public grpc::ServerWriteReactor<pb::Item> {
 public:
  explicit Serving(const pb::Wanted& wanted) : left_(wanted.count()) {
    item_.set_id("0123456789abcdef");
    item_.set_body(std::string(wanted.size(), '\0'));
    next();
  }
  void OnWriteDone(bool ok) override { ok ? next() : Finish(Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void next() {
    if (left_ == 0) return Finish(Status::OK);
    item_.set_at(--left_ | 1 << 20);
    StartWrite(&item_);
  }
  pb::Item item_;
  int left_;
};

class Collecting final : public grpc::ServerReadReactor<pb::Item> {
 public:
  explicit Collecting(pb::Item* answer) : answer_(answer) { StartRead(&item_); }
  void OnReadDone(bool ok) override {
    if (ok) {
      ++count_;
      copy(item_, answer_);
      StartRead(&item_);
    } else {
      answer_->set_at(count_);
      Finish(Status::OK);
    }
  }
  void OnDone() override { delete this; }

 private:
  pb::Item item_, *answer_;
  long count_ = 0;
};

class Chatting final : public grpc::ServerBidiReactor<pb::Item, pb::Item> {
 public:
  Chatting() { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(Status::OK);
    copy(request_, &answer_);
    StartWrite(&answer_);
  }
  void OnWriteDone(bool ok) override { ok ? StartRead(&request_) : Finish(Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  pb::Item request_, answer_;
};

class Service final : public pb::Load::CallbackService {
  grpc::ServerUnaryReactor* Echo(Context* context, const pb::Item* request, pb::Item* answer) override {
    copy(*request, answer);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(Status::OK);
    return reactor;
  }
  grpc::ServerWriteReactor<pb::Item>* Serve(Context*, const pb::Wanted* wanted) override {
    return new Serving(*wanted);
  }
  grpc::ServerReadReactor<pb::Item>* Collect(Context*, pb::Item* answer) override {
    return new Collecting(answer);
  }
  grpc::ServerBidiReactor<pb::Item, pb::Item>* Chat(Context*) override { return new Chatting; }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: server PORT\n"), 2;
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("127.0.0.1:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 100000);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  puts("listening");
  fflush(stdout);
  server->Wait();
}
