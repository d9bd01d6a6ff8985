// oracle.py's questions about the wire, answered by Google's C++ protobuf. Types come from
// descriptors: no generated code is needed.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using google::protobuf::DescriptorPool;
using google::protobuf::DynamicMessageFactory;
using google::protobuf::FileDescriptorProto;
using google::protobuf::Message;

static DescriptorPool pool;
static DynamicMessageFactory factory(&pool);

static bool encode(const Message& message, std::string* out) {
  google::protobuf::io::StringOutputStream stream(out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  return message.SerializePartialToCodedStream(&coded);
}

static bool answer(char operation, const std::string& name, const std::string& argument,
                   std::string* result) {
  if (operation == 'F') {
    FileDescriptorProto file;
    return file.ParseFromString(argument) && pool.BuildFile(file) != nullptr;
  }
  const auto* type = pool.FindMessageTypeByName(name);
  if (type == nullptr) return false;
  std::unique_ptr<Message> message(factory.GetPrototype(type)->New());
  switch (operation) {
    case 'P':
      return message->ParsePartialFromString(argument) && encode(*message, result);
    case 'T':
      return message->ParsePartialFromString(argument) &&
             google::protobuf::TextFormat::PrintToString(*message, result);
    case 'U': {
      google::protobuf::TextFormat::Parser parser;
      parser.AllowPartialMessage(true);
      return parser.ParseFromString(argument, message.get()) && encode(*message, result);
    }
    default:
      return false;
  }
}

static uint32_t length(const char* bytes) {
  uint32_t value;
  memcpy(&value, bytes, 4);
  return value;
}

static void append(std::string* out, bool success, const std::string& result) {
  const uint32_t size = result.size();
  out->push_back(success ? 1 : 0);
  out->append(reinterpret_cast<const char*>(&size), 4);
  out->append(result);
}

int main() {
  google::protobuf::SetLogHandler(nullptr);
  char head[4];
  while (fread(head, 1, 4, stdin) == 4) {
    std::string frame(length(head), '\0');
    if (fread(&frame[0], 1, frame.size(), stdin) != frame.size()) return 1;
    std::vector<std::string> parts;
    for (size_t position = 1; position < frame.size();) {
      const uint32_t size = length(&frame[position]);
      parts.push_back(frame.substr(position + 4, size));
      position += 4 + size;
    }
    std::string body;
    for (size_t index = 1; index < parts.size(); index++) {
      std::string result;
      const bool success = answer(frame[0], parts[0], parts[index], &result);
      append(&body, success, success ? result : "");
    }
    const uint32_t size = body.size();
    fwrite(&size, 1, 4, stdout);
    fwrite(body.data(), 1, body.size(), stdout);
    fflush(stdout);
  }
  return 0;
}
