// The client of gRPC's interoperability tests on Debian's gRPC, with the
// official flags; --ca_file=FILE names the issuer. Exits 0 when the case passed.
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "checks.h"
#include "src/proto/grpc/testing/test.grpc.pb.h"
#include "testing.h"

namespace pb = grpc::testing;
using grpc::ClientContext;
using grpc::Status;

namespace {

constexpr int large_request = 271828, large_response = 314159;
const std::vector<std::pair<int, int>> sizes = {
    {31415, 27182}, {9, 8}, {2653, 1828}, {58979, 45904}};

pb::SimpleRequest large() {
  pb::SimpleRequest request;
  request.set_response_size(large_response);
  request.mutable_payload()->set_body(std::string(large_request, '\0'));
  return request;
}

pb::StreamingInputCallRequest input(int size) {
  pb::StreamingInputCallRequest request;
  request.mutable_payload()->set_body(std::string(size, '\0'));
  return request;
}

pb::StreamingOutputCallRequest output(int size, int body) {
  pb::StreamingOutputCallRequest request;
  if (size >= 0) request.add_response_parameters()->set_size(size);
  if (body > 0) request.mutable_payload()->set_body(std::string(body, '\0'));
  return request;
}

template <class Response>
void check_size(const Response& response, int size) {
  require(response.payload().body() == std::string(size, '\0'),
          std::to_string(response.payload().body().size()) + " bytes, not " + std::to_string(size));
}

class Cases {
 public:
  explicit Cases(std::function<std::shared_ptr<grpc::Channel>()> make)
      : make_(std::move(make)), channel_(make_()), stub_(pb::TestService::NewStub(channel_)) {}

  void run(const std::string& name) {
    const std::map<std::string, void (Cases::*)()> all = {
        {"empty_unary", &Cases::empty_unary},
        {"large_unary", &Cases::large_unary},
        {"client_compressed_unary", &Cases::client_compressed_unary},
        {"server_compressed_unary", &Cases::server_compressed_unary},
        {"client_streaming", &Cases::client_streaming},
        {"client_compressed_streaming", &Cases::client_compressed_streaming},
        {"server_streaming", &Cases::server_streaming},
        {"server_compressed_streaming", &Cases::server_compressed_streaming},
        {"ping_pong", &Cases::ping_pong},
        {"empty_stream", &Cases::empty_stream},
        {"custom_metadata", &Cases::custom_metadata},
        {"status_code_and_message", &Cases::status_code_and_message},
        {"special_status_message", &Cases::special_status_message},
        {"unimplemented_method", &Cases::unimplemented_method},
        {"unimplemented_service", &Cases::unimplemented_service},
        {"cancel_after_begin", &Cases::cancel_after_begin},
        {"cancel_after_first_response", &Cases::cancel_after_first_response},
        {"timeout_on_sleeping_server", &Cases::timeout_on_sleeping_server},
        {"rpc_soak", &Cases::rpc_soak},
        {"channel_soak", &Cases::channel_soak},
    };
    const auto found = all.find(name);
    require(found != all.end(), "no such case");
    (this->*found->second)();
  }

 private:
  void empty_unary() {
    auto call = context();
    pb::Empty request, response;
    require_ok(stub_->EmptyCall(call.get(), request, &response), "EmptyCall");
    require(response.ByteSizeLong() == 0, "the response is not empty");
  }

  void large_unary() {
    auto call = context();
    pb::SimpleResponse response;
    require_ok(stub_->UnaryCall(call.get(), large(), &response), "UnaryCall");
    check_size(response, large_response);
  }

  void client_compressed_unary() {
    auto request = large();
    request.mutable_expect_compressed()->set_value(true);
    pb::SimpleResponse response;
    {
      auto call = context();
      call->set_compression_algorithm(GRPC_COMPRESS_NONE);
      require_code(stub_->UnaryCall(call.get(), request, &response),
                   grpc::StatusCode::INVALID_ARGUMENT, "the probe");
    }
    for (const bool compressed : {true, false}) {
      request.mutable_expect_compressed()->set_value(compressed);
      auto call = context();
      call->set_compression_algorithm(compressed ? GRPC_COMPRESS_GZIP : GRPC_COMPRESS_NONE);
      require_ok(stub_->UnaryCall(call.get(), request, &response), "UnaryCall");
      check_size(response, large_response);
    }
  }

  void server_compressed_unary() {
    for (const bool compressed : {true, false}) {
      auto request = large();
      request.mutable_response_compressed()->set_value(compressed);
      auto call = context();
      pb::SimpleResponse response;
      require_ok(stub_->UnaryCall(call.get(), request, &response), "UnaryCall");
      require(came_compressed(call.get()) == compressed, "compressed against what was asked for");
      check_size(response, large_response);
    }
  }

  void client_streaming() {
    auto call = context();
    pb::StreamingInputCallResponse response;
    auto writer = stub_->StreamingInputCall(call.get(), &response);
    for (const int size : {27182, 8, 1828, 45904}) require(writer->Write(input(size)), "Write");
    writer->WritesDone();
    require_ok(writer->Finish(), "StreamingInputCall");
    require(response.aggregated_payload_size() == 74922, "the sum");
  }

  void client_compressed_streaming() {
    pb::StreamingInputCallResponse response;
    auto request = input(27182);
    request.mutable_expect_compressed()->set_value(true);
    {
      auto call = context();
      call->set_compression_algorithm(GRPC_COMPRESS_GZIP);
      auto writer = stub_->StreamingInputCall(call.get(), &response);
      writer->Write(request, grpc::WriteOptions().set_no_compression());
      writer->WritesDone();
      require_code(writer->Finish(), grpc::StatusCode::INVALID_ARGUMENT, "the probe");
    }
    auto call = context();
    call->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    auto writer = stub_->StreamingInputCall(call.get(), &response);
    require(writer->Write(request), "the compressed message");
    request = input(45904);
    request.mutable_expect_compressed()->set_value(false);
    require(writer->Write(request, grpc::WriteOptions().set_no_compression()), "the other one");
    writer->WritesDone();
    require_ok(writer->Finish(), "StreamingInputCall");
    require(response.aggregated_payload_size() == 73086, "the sum");
  }

  void server_streaming() {
    pb::StreamingOutputCallRequest request;
    for (const auto& one : sizes) request.add_response_parameters()->set_size(one.first);
    auto call = context();
    auto reader = stub_->StreamingOutputCall(call.get(), request);
    pb::StreamingOutputCallResponse response;
    for (const auto& one : sizes) {
      require(reader->Read(&response), "a response is missing");
      check_size(response, one.first);
    }
    require(!reader->Read(&response), "a fifth response");
    require_ok(reader->Finish(), "StreamingOutputCall");
  }

  void server_compressed_streaming() {
    const std::vector<std::pair<int, bool>> wanted = {{31415, true}, {92653, false}};
    pb::StreamingOutputCallRequest request;
    for (const auto& [size, compressed] : wanted) {
      auto* parameters = request.add_response_parameters();
      parameters->set_size(size);
      parameters->mutable_compressed()->set_value(compressed);
    }
    auto call = context();
    auto reader = stub_->StreamingOutputCall(call.get(), request);
    pb::StreamingOutputCallResponse response;
    for (const auto& [size, compressed] : wanted) {
      require(reader->Read(&response), "a response is missing");
      require(came_compressed(call.get()) == compressed, "compressed against what was asked for");
      check_size(response, size);
    }
    require(!reader->Read(&response), "a third response");
    require_ok(reader->Finish(), "StreamingOutputCall");
  }

  void ping_pong() {
    auto call = context();
    auto stream = stub_->FullDuplexCall(call.get());
    pb::StreamingOutputCallResponse response;
    for (const auto& [size, body] : sizes) {
      require(stream->Write(output(size, body)), "Write");
      require(stream->Read(&response), "Read");
      check_size(response, size);
    }
    stream->WritesDone();
    require(!stream->Read(&response), "a fifth response");
    require_ok(stream->Finish(), "FullDuplexCall");
  }

  void empty_stream() {
    auto call = context();
    auto stream = stub_->FullDuplexCall(call.get());
    stream->WritesDone();
    pb::StreamingOutputCallResponse response;
    require(!stream->Read(&response), "a response");
    require_ok(stream->Finish(), "FullDuplexCall");
  }

  static void add_metadata(ClientContext* call) {
    call->AddMetadata("x-grpc-test-echo-initial", "test_initial_metadata_value");
    call->AddMetadata("x-grpc-test-echo-trailing-bin", "\xab\xab\xab");
  }

  static void check_metadata(ClientContext* call) {
    const auto& initial = call->GetServerInitialMetadata();
    const auto text = initial.find("x-grpc-test-echo-initial");
    require(text != initial.end() && text->second == "test_initial_metadata_value", "initial");
    const auto& trailing = call->GetServerTrailingMetadata();
    const auto bytes = trailing.find("x-grpc-test-echo-trailing-bin");
    require(bytes != trailing.end() && bytes->second == "\xab\xab\xab", "trailing");
  }

  void custom_metadata() {
    {
      auto call = context();
      add_metadata(call.get());
      pb::SimpleResponse response;
      require_ok(stub_->UnaryCall(call.get(), large(), &response), "UnaryCall");
      check_size(response, large_response);
      check_metadata(call.get());
    }
    auto call = context();
    add_metadata(call.get());
    auto stream = stub_->FullDuplexCall(call.get());
    require(stream->Write(output(large_response, large_request)), "Write");
    stream->WritesDone();
    pb::StreamingOutputCallResponse response;
    require(stream->Read(&response), "Read");
    check_size(response, large_response);
    require(!stream->Read(&response), "a second response");
    require_ok(stream->Finish(), "FullDuplexCall");
    check_metadata(call.get());
  }

  void status_code_and_message() {
    pb::SimpleRequest request;
    request.mutable_response_status()->set_code(2);
    request.mutable_response_status()->set_message("test status message");
    auto unary_call = context();
    pb::SimpleResponse response;
    const Status unary = stub_->UnaryCall(unary_call.get(), request, &response);
    require_code(unary, grpc::StatusCode::UNKNOWN, "UnaryCall");
    require(unary.error_message() == "test status message", unary.error_message());

    auto call = context();
    auto stream = stub_->FullDuplexCall(call.get());
    pb::StreamingOutputCallRequest wish;
    *wish.mutable_response_status() = request.response_status();
    stream->Write(wish);
    stream->WritesDone();
    pb::StreamingOutputCallResponse none;
    while (stream->Read(&none)) {
    }
    const Status duplex = stream->Finish();
    require_code(duplex, grpc::StatusCode::UNKNOWN, "FullDuplexCall");
    require(duplex.error_message() == "test status message", duplex.error_message());
  }

  void special_status_message() {
    const std::string message =
        "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
    pb::SimpleRequest request;
    request.mutable_response_status()->set_code(2);
    request.mutable_response_status()->set_message(message);
    auto call = context();
    pb::SimpleResponse response;
    const Status status = stub_->UnaryCall(call.get(), request, &response);
    require_code(status, grpc::StatusCode::UNKNOWN, "UnaryCall");
    require(status.error_message() == message, status.error_message());
  }

  void unimplemented_method() {
    auto call = context();
    pb::Empty response;
    require_code(stub_->UnimplementedCall(call.get(), {}, &response),
                 grpc::StatusCode::UNIMPLEMENTED, "UnimplementedCall");
  }

  void unimplemented_service() {
    auto call = context();
    pb::Empty response;
    require_code(
        pb::UnimplementedService::NewStub(channel_)->UnimplementedCall(call.get(), {}, &response),
        grpc::StatusCode::UNIMPLEMENTED, "UnimplementedService");
  }

  void cancel_after_begin() {
    auto call = context();
    pb::StreamingInputCallResponse response;
    auto writer = stub_->StreamingInputCall(call.get(), &response);
    call->TryCancel();
    require_code(writer->Finish(), grpc::StatusCode::CANCELLED, "StreamingInputCall");
  }

  void cancel_after_first_response() {
    auto call = context();
    auto stream = stub_->FullDuplexCall(call.get());
    require(stream->Write(output(31415, 27182)), "Write");
    pb::StreamingOutputCallResponse response;
    require(stream->Read(&response), "Read");
    check_size(response, 31415);
    call->TryCancel();
    require_code(stream->Finish(), grpc::StatusCode::CANCELLED, "FullDuplexCall");
  }

  void timeout_on_sleeping_server() {
    auto call = context(1);
    auto stream = stub_->FullDuplexCall(call.get());
    stream->Write(output(-1, 27182));
    pb::StreamingOutputCallResponse response;
    stream->Read(&response);
    require_code(stream->Finish(), grpc::StatusCode::DEADLINE_EXCEEDED, "FullDuplexCall");
  }

  void rpc_soak() {
    for (int i = 0; i < 10; ++i) large_unary();
  }

  void channel_soak() {
    for (int i = 0; i < 10; ++i) Cases(make_).large_unary();
  }

  std::function<std::shared_ptr<grpc::Channel>()> make_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<pb::TestService::Stub> stub_;
};

}  // namespace

int main(int count, char** arguments) {
  const Flags flags(count, arguments);
  const auto make = [&] {
    grpc::ChannelArguments options;
    options.SetMaxReceiveMessageSize(8 << 20);
    // A new channel is a new connection.
    options.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (flags.is("use_tls")) {
      grpc::SslCredentialsOptions tls;
      tls.pem_root_certs = contents(flags.text("ca_file"));
      credentials = grpc::SslCredentials(tls);
      if (const auto name = flags.text("server_host_override"); !name.empty())
        options.SetSslTargetNameOverride(name);
    }
    return grpc::CreateCustomChannel(
        flags.text("server_host", "localhost") + ":" + flags.text("server_port"), credentials,
        options);
  };
  const auto name = flags.text("test_case");
  check(name.c_str(), [&] { Cases(make).run(name); });
  return failures == 0 ? 0 : 1;
}
