// Unary calls of calls.proto with gRPC C++: COUNT in all, AT_A_TIME at once, one thread.
//
// usage: client ADDRESS COUNT AT_A_TIME SIZE; prints how many answers were right.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "calls.grpc.pb.h"

namespace pb = vencejo::calls::v1;

struct Call {
  grpc::ClientContext context;
  grpc::Status status;
  pb::Item answer;
  std::unique_ptr<grpc::ClientAsyncResponseReader<pb::Item>> reader;
};

int main(int argc, char** argv) {
  if (argc != 5) return fprintf(stderr, "usage: client ADDRESS COUNT AT_A_TIME SIZE\n"), 2;
  const int count = atoi(argv[2]), at_a_time = atoi(argv[3]);
  pb::Item item;
  item.set_id("0123456789abcdef");
  item.set_at(1 << 20);
  item.set_body(std::string(atoi(argv[4]), '\0'));
  const auto stub =
      pb::Load::NewStub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  grpc::CompletionQueue queue;
  int begun = 0, ended = 0, right = 0;
  const auto begin = [&] {
    auto* call = new Call;
    call->reader = stub->AsyncEcho(&call->context, item, &queue);
    call->reader->Finish(&call->answer, &call->status, call);
    ++begun;
  };
  while (begun < at_a_time && begun < count) begin();
  void* tag;
  bool ok;
  while (ended < count && queue.Next(&tag, &ok)) {
    std::unique_ptr<Call> call(static_cast<Call*>(tag));
    ++ended;
    right += call->status.ok() && call->answer.id() == item.id() && call->answer.at() == item.at() &&
             call->answer.body() == item.body();
    if (begun < count) begin();
  }
  printf("%d\n", right);
}
