// A gRPC C++ server of interop.proto.
//
// usage: echo_server [ADDRESS]; prints `listening on ADDRESS` once it accepts
// and serves until SIGTERM.
#include <csignal>
#include <cstdio>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>

#include "checks.h"
#include "interop.grpc.pb.h"

namespace pb = vencejo::interop::v1;
using grpc::ServerContext;
using grpc::Status;

namespace {

std::string text(const grpc::string_ref& value) { return {value.data(), value.size()}; }

void mirror_metadata(ServerContext* context) {
  for (const auto& [key, value] : context->client_metadata()) {
    const std::string name = text(key);
    if (name.rfind("x-initial-", 0) == 0) context->AddInitialMetadata(name, text(value));
    if (name.rfind("x-trailing-", 0) == 0) context->AddTrailingMetadata(name, text(value));
  }
}

int64_t remaining(ServerContext* context) {
  using namespace std::chrono;
  const auto left = context->deadline() - system_clock::now();
  const auto milliseconds = duration_cast<std::chrono::milliseconds>(left).count();
  // gRPC says "about for ever" where there is no deadline.
  return milliseconds > 1000LL * 3600 * 24 * 365 ? -1 : milliseconds;
}

Status failure(const pb::Failure& failure) {
  if (failure.details().empty())
    return Status(static_cast<grpc::StatusCode>(failure.code()), failure.message());
  pb::Status status;
  status.set_code(failure.code());
  status.set_message(failure.message());
  *status.mutable_details() = failure.details();
  return Status(static_cast<grpc::StatusCode>(failure.code()), failure.message(),
                status.SerializeAsString());
}

// Waits as asked; false when the call ended meanwhile. The synchronous API has
// no signal for that, so it is asked every few milliseconds.
bool waited(ServerContext* context, int milliseconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < until) {
    if (context->IsCancelled()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class EchoService final : public pb::Echo::Service {
  struct Holds {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, long long> ended;
  } holds_;

  bool answer(ServerContext* context, const pb::EchoRequest& request, int count, int first,
              const std::function<bool(const pb::EchoResponse&)>& write) {
    const auto deadline = remaining(context);
    for (int i = 0; i < count; ++i) {
      if (request.delay_milliseconds() > 0 && !waited(context, request.delay_milliseconds()))
        return false;
      pb::EchoResponse response;
      if (request.response_bytes() > 0)
        response.set_payload(std::string(request.response_bytes(), '\x5a'));
      else
        response.set_payload(request.payload());
      response.set_index(first + i);
      response.set_deadline_milliseconds(deadline);
      if (!write(response)) return false;
    }
    return true;
  }

  static int count(const pb::EchoRequest& request) {
    return request.response_count() == 0 ? 1 : std::max(0, request.response_count());
  }

 public:
  Status Unary(ServerContext* context, const pb::EchoRequest* request,
               pb::EchoResponse* response) override {
    mirror_metadata(context);
    answer(context, *request, 1, 0, [&](const pb::EchoResponse& made) {
      *response = made;
      return true;
    });
    return request->has_failure() ? failure(request->failure()) : Status::OK;
  }

  Status ServerStream(ServerContext* context, const pb::EchoRequest* request,
                      grpc::ServerWriter<pb::EchoResponse>* writer) override {
    mirror_metadata(context);
    answer(context, *request, count(*request), 0,
           [&](const pb::EchoResponse& made) { return writer->Write(made); });
    return request->has_failure() ? failure(request->failure()) : Status::OK;
  }

  Status ClientStream(ServerContext* context, grpc::ServerReader<pb::EchoRequest>* reader,
                      pb::EchoResponse* response) override {
    mirror_metadata(context);
    response->set_deadline_milliseconds(remaining(context));
    pb::EchoRequest request;
    while (reader->Read(&request)) {
      response->set_payload(request.payload());
      response->set_request_count(response->request_count() + 1);
      response->set_request_bytes(response->request_bytes() + request.payload().size());
      if (request.has_failure()) return failure(request.failure());
    }
    return Status::OK;
  }

  Status Bidirectional(
      ServerContext* context,
      grpc::ServerReaderWriter<pb::EchoResponse, pb::EchoRequest>* stream) override {
    mirror_metadata(context);
    stream->SendInitialMetadata();
    pb::EchoRequest request;
    int index = 0;
    while (stream->Read(&request)) {
      const bool going = answer(context, request, count(request), index,
                                [&](const pb::EchoResponse& made) { return stream->Write(made); });
      if (!going) break;
      index += count(request);
      if (request.has_failure()) return failure(request.failure());
    }
    return Status::OK;
  }

  Status Hold(ServerContext* context, const pb::HoldRequest* request,
              grpc::ServerWriter<pb::HoldResponse>* writer) override {
    {
      std::lock_guard lock(holds_.mutex);
      holds_.ended[request->key()] = 0;
    }
    pb::HoldResponse response;
    response.set_key(request->key());
    writer->Write(response);
    while (waited(context, 1000)) {
    }
    std::lock_guard lock(holds_.mutex);
    holds_.ended[request->key()] = now_micros();
    holds_.changed.notify_all();
    return Status::CANCELLED;
  }

  Status GetHold(ServerContext*, const pb::GetHoldRequest* request,
                 pb::GetHoldResponse* response) override {
    std::unique_lock lock(holds_.mutex);
    holds_.changed.wait_for(lock, std::chrono::milliseconds(request->wait_milliseconds()),
                            [&] { return holds_.ended[request->key()] != 0; });
    response->set_started(holds_.ended.count(request->key()) > 0);
    response->set_cancel_time_micros(holds_.ended[request->key()]);
    response->set_cancelled(response->cancel_time_micros() != 0);
    return Status::OK;
  }
};

}  // namespace

int main(int argc, char** argv) {
  // Taken by sigwait below, on this thread and no other.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const std::string address = argc > 1 ? argv[1] : "127.0.0.1:0";
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  EchoService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server || port == 0) {
    std::fprintf(stderr, "cannot listen on %s\n", address.c_str());
    return 1;
  }
  std::printf("listening on %s:%d\n", address.substr(0, address.rfind(':')).c_str(), port);
  std::fflush(stdout);

  int signal = 0;
  sigwait(&signals, &signal);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  return 0;
}
