// The server of gRPC's interoperability tests on Debian's gRPC, with the
// official flags: --port=PORT --use_tls=BOOLEAN, and --tls_cert_file=FILE
// --tls_key_file=FILE.
#include <csignal>
#include <cstdio>
#include <thread>
#include <vector>

#include "src/proto/grpc/testing/test.grpc.pb.h"
#include "testing.h"

namespace pb = grpc::testing;
using grpc::ServerContext;
using grpc::Status;

namespace {

std::string text(const grpc::string_ref& value) { return {value.data(), value.size()}; }

void echo_metadata(ServerContext* context) {
  for (const auto& [key, value] : context->client_metadata()) {
    if (key == "x-grpc-test-echo-initial") context->AddInitialMetadata(text(key), text(value));
    if (key == "x-grpc-test-echo-trailing-bin")
      context->AddTrailingMetadata(text(key), text(value));
  }
}

template <class Request>
Status check_compression(ServerContext* context, const Request& request) {
  if (request.has_expect_compressed() && request.expect_compressed().value() &&
      !came_compressed(context))
    return Status(grpc::StatusCode::INVALID_ARGUMENT, "the request came uncompressed");
  return Status::OK;
}

template <class Request>
Status asked_for(const Request& request) {
  if (!request.has_response_status()) return Status::OK;
  return Status(static_cast<grpc::StatusCode>(request.response_status().code()),
                request.response_status().message());
}

class Service final : public pb::TestService::Service {
  Status EmptyCall(ServerContext* context, const pb::Empty*, pb::Empty*) override {
    echo_metadata(context);
    return Status::OK;
  }

  Status UnaryCall(ServerContext* context, const pb::SimpleRequest* request,
                   pb::SimpleResponse* response) override {
    echo_metadata(context);
    if (const Status status = check_compression(context, *request); !status.ok()) return status;
    if (const Status status = asked_for(*request); !status.ok()) return status;
    if (request->has_response_compressed())
      context->set_compression_algorithm(request->response_compressed().value()
                                             ? GRPC_COMPRESS_GZIP
                                             : GRPC_COMPRESS_NONE);
    response->mutable_payload()->set_body(std::string(request->response_size(), '\0'));
    return Status::OK;
  }

  Status StreamingInputCall(ServerContext* context,
                            grpc::ServerReader<pb::StreamingInputCallRequest>* reader,
                            pb::StreamingInputCallResponse* response) override {
    pb::StreamingInputCallRequest request;
    int sum = 0;
    while (reader->Read(&request)) {
      if (const Status status = check_compression(context, request); !status.ok()) return status;
      sum += static_cast<int>(request.payload().body().size());
    }
    response->set_aggregated_payload_size(sum);
    return Status::OK;
  }

  template <class Writer>
  void answer(const pb::StreamingOutputCallRequest& request, Writer* writer) {
    for (const auto& wanted : request.response_parameters()) {
      if (wanted.interval_us() > 0)
        std::this_thread::sleep_for(std::chrono::microseconds(wanted.interval_us()));
      pb::StreamingOutputCallResponse response;
      response.mutable_payload()->set_body(std::string(wanted.size(), '\0'));
      grpc::WriteOptions options;
      if (!wanted.compressed().value()) options.set_no_compression();
      writer->Write(response, options);
    }
  }

  Status StreamingOutputCall(ServerContext* context, const pb::StreamingOutputCallRequest* request,
                             grpc::ServerWriter<pb::StreamingOutputCallResponse>* writer) override {
    echo_metadata(context);
    context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    answer(*request, writer);
    return Status::OK;
  }

  Status FullDuplexCall(ServerContext* context,
                        grpc::ServerReaderWriter<pb::StreamingOutputCallResponse,
                                                 pb::StreamingOutputCallRequest>* stream) override {
    echo_metadata(context);
    pb::StreamingOutputCallRequest request;
    while (stream->Read(&request)) {
      if (const Status status = asked_for(request); !status.ok()) return status;
      answer(request, stream);
    }
    return Status::OK;
  }
};

}  // namespace

int main(int count, char** arguments) {
  // The thread that waits for the signal is the only one to get it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Flags flags(count, arguments);
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (flags.is("use_tls")) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back(
        {contents(flags.text("tls_key_file")), contents(flags.text("tls_cert_file"))});
    credentials = grpc::SslServerCredentials(options);
  }
  Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.SetMaxReceiveMessageSize(8 << 20);
  builder.AddListeningPort("127.0.0.1:" + flags.text("port", "0"), credentials, &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server || port == 0) return 1;
  std::printf("listening on 127.0.0.1:%d\n", port);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}
