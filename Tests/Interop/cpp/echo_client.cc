// Drives a server of interop.proto with gRPC C++'s client.
//
// usage: echo_client ADDRESS; one line per check, exit code 0 when all passed.
#include <thread>

#include "checks.h"
#include "interop.grpc.pb.h"

namespace pb = vencejo::interop::v1;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: echo_client ADDRESS\n");
    return 2;
  }
  const auto stub = pb::Echo::NewStub(channel(argv[1]));

  check("unary", [&] {
    for (const std::string payload : {"", "swift", "\x01\x02"}) {
      pb::EchoRequest request;
      request.set_payload(payload);
      pb::EchoResponse response;
      require_ok(stub->Unary(context().get(), request, &response), "call");
      require(response.payload() == payload, "another payload came back");
    }
  });

  check("server stream", [&] {
    pb::EchoRequest request;
    request.set_payload("x");
    request.set_response_count(1000);
    const auto call = context();
    const auto reader = stub->ServerStream(call.get(), request);
    pb::EchoResponse response;
    int count = 0;
    while (reader->Read(&response)) require(response.index() == count++, "out of order");
    require_ok(reader->Finish(), "finish");
    require(count == 1000, "not all came");
  });

  check("client stream", [&] {
    pb::EchoResponse response;
    const auto call = context();
    const auto writer = stub->ClientStream(call.get(), &response);
    for (int i = 0; i < 500; ++i) {
      pb::EchoRequest request;
      request.set_payload(std::string(i, 'a'));
      require(writer->Write(request), "write");
    }
    writer->WritesDone();
    require_ok(writer->Finish(), "finish");
    require(response.request_count() == 500 && response.request_bytes() == 500 * 499 / 2,
            "wrong sums");
  });

  check("bidirectional in lockstep", [&] {
    const auto call = context();
    const auto stream = stub->Bidirectional(call.get());
    for (int i = 0; i < 100; ++i) {
      pb::EchoRequest request;
      request.set_payload(std::to_string(i));
      require(stream->Write(request), "write");
      pb::EchoResponse response;
      require(stream->Read(&response), "read");
      require(response.payload() == std::to_string(i), "another payload came back");
    }
    stream->WritesDone();
    require_ok(stream->Finish(), "finish");
  });

  check("bidirectional from two threads", [&] {
    const auto call = context();
    const auto stream = stub->Bidirectional(call.get());
    std::thread sender([&] {
      pb::EchoRequest request;
      request.set_payload(std::string(10000, 'b'));
      for (int i = 0; i < 500; ++i) stream->Write(request);
      stream->WritesDone();
    });
    pb::EchoResponse response;
    int count = 0;
    while (stream->Read(&response)) ++count;
    sender.join();
    require_ok(stream->Finish(), "finish");
    require(count == 500, "not all came back");
  });

  check("three mebibytes both ways", [&] {
    pb::EchoRequest request;
    request.set_payload(std::string(3 << 20, 'c'));
    pb::EchoResponse response;
    require_ok(stub->Unary(context().get(), request, &response), "call");
    require(response.payload() == request.payload(), "another payload came back");
  });

  check("five mebibytes are refused", [&] {
    pb::EchoRequest request;
    request.set_payload(std::string(5 << 20, 'c'));
    pb::EchoResponse response;
    require_code(stub->Unary(context().get(), request, &response),
                 grpc::StatusCode::RESOURCE_EXHAUSTED, "call");
    request.set_payload("on");
    require_ok(stub->Unary(context().get(), request, &response), "the call after it");
  });

  check("every status code", [&] {
    for (int code = 1; code <= 16; ++code) {
      pb::EchoRequest request;
      request.mutable_failure()->set_code(code);
      request.mutable_failure()->set_message("pidió " + std::to_string(code));
      pb::EchoResponse response;
      const auto status = stub->Unary(context().get(), request, &response);
      require_code(status, static_cast<grpc::StatusCode>(code), "status");
      require(status.error_message() == request.failure().message(), status.error_message());
    }
  });

  check("status details", [&] {
    pb::EchoRequest request;
    request.mutable_failure()->set_code(9);
    request.mutable_failure()->set_message("with details");
    auto* detail = request.mutable_failure()->add_details();
    detail->set_type_url("type.googleapis.com/any.Thing");
    detail->set_value(std::string("\0\1\2", 3));
    pb::EchoResponse response;
    const auto status = stub->Unary(context().get(), request, &response);
    pb::Status details;
    require(details.ParseFromString(status.error_details()), "no google.rpc.Status");
    require(details.details_size() == 1 && details.details(0).value() == detail->value(),
            "other details came");
  });

  check("metadata both ways", [&] {
    const std::string raw("\0\1\377,", 4);
    const auto call = context();
    call->AddMetadata("x-initial-text", "plain, with commas");
    call->AddMetadata("x-initial-raw-bin", raw);
    call->AddMetadata("x-trailing-raw-bin", raw);
    pb::EchoResponse response;
    require_ok(stub->Unary(call.get(), pb::EchoRequest(), &response), "call");
    const auto find = [](const auto& metadata, const char* key) {
      const auto found = metadata.find(key);
      return found == metadata.end() ? std::string("(none)")
                                     : std::string(found->second.data(), found->second.size());
    };
    const auto& initial = call->GetServerInitialMetadata();
    require(find(initial, "x-initial-text") == "plain, with commas", "initial text");
    require(find(initial, "x-initial-raw-bin") == raw, "initial bytes");
    require(find(call->GetServerTrailingMetadata(), "x-trailing-raw-bin") == raw, "trailing bytes");
  });

  check("deadline passes", [&] {
    pb::EchoRequest request;
    request.set_delay_milliseconds(20000);
    pb::EchoResponse response;
    require_code(stub->Unary(context(200).get(), request, &response),
                 grpc::StatusCode::DEADLINE_EXCEEDED, "call");
  });

  check("cancellation reaches the handler", [&] {
    long long best = 1 << 30;
    for (int i = 0; i < 5; ++i) {
      pb::HoldRequest request;
      request.set_key("cpp-" + std::to_string(now_micros()));
      const auto call = context();
      const auto reader = stub->Hold(call.get(), request);
      pb::HoldResponse started;
      require(reader->Read(&started), "the handler did not start");
      const auto cancelled = now_micros();
      call->TryCancel();
      pb::GetHoldRequest ask;
      ask.set_key(request.key());
      ask.set_wait_milliseconds(10000);
      pb::GetHoldResponse held;
      require_ok(stub->GetHold(context().get(), ask, &held), "ask");
      require(held.cancelled(), "the handler does not know");
      require_code(reader->Finish(), grpc::StatusCode::CANCELLED, "finish");
      best = std::min(best, held.cancel_time_micros() - cancelled);
    }
    require(best < 50000, "microseconds until the handler knew: " + std::to_string(best));
  });

  return failures == 0 ? 0 : 1;
}
