// C++'s side of Scripts/bench/codec; commands as those of Sources/codec-bench.

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "bench.pb.h"

namespace {

using google::protobuf::util::JsonStringToMessage;
using google::protobuf::util::MessageToJsonString;

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::cerr << "cannot read " << path << "\n";
    exit(1);
  }
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void Must(bool good) {
  if (!good) {
    std::cerr << "codec: an operation failed\n";
    exit(1);
  }
}

template <typename T>
void Keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

struct Operation {
  std::string name;
  std::function<void(long)> run;
};

struct Subject {
  std::string name;
  std::vector<Operation> operations;
  std::function<void(const std::string&)> results;
};

template <typename M>
Subject Make(const std::string& name, const std::string& inputs) {
  auto* bytes = new std::string(Read(inputs + "/" + name + ".bin"));
  auto* json = new std::string(Read(inputs + "/" + name + ".json"));
  auto* message = new M;
  Must(message->ParseFromString(*bytes));
  auto encode = [=](long count) {
    for (; count > 0; count--) {
      std::string result;
      Must(message->SerializeToString(&result));
      Keep(result);
    }
  };
  auto decode = [=](long count) {
    for (; count > 0; count--) {
      M result;
      Must(result.ParseFromString(*bytes));
      Keep(result);
    }
  };
  auto json_encode = [=](long count) {
    for (; count > 0; count--) {
      std::string result;
      Must(MessageToJsonString(*message, &result).ok());
      Keep(result);
    }
  };
  auto json_decode = [=](long count) {
    for (; count > 0; count--) {
      M result;
      Must(JsonStringToMessage(*json, &result).ok());
      Keep(result);
    }
  };
  auto results = [=](const std::string& outputs) {
    std::string text;
    Must(MessageToJsonString(*message, &text).ok());
    M back;
    Must(JsonStringToMessage(*json, &back).ok());
    Write(outputs + "/" + name + ".bin", message->SerializeAsString());
    Write(outputs + "/" + name + ".json", text);
    Write(outputs + "/" + name + ".fromjson", back.SerializeAsString());
  };
  return {name,
          {{"encode", encode},
           {"decode", decode},
           {"json-encode", json_encode},
           {"json-decode", json_decode}},
          results};
}

std::vector<Subject> Subjects(const std::string& inputs) {
  return {
      Make<bench::ChatMessage>("chat", inputs),
      Make<bench::Record>("record", inputs),
      Make<bench::Packed>("packed", inputs),
      Make<bench::Blob>("blob", inputs),
      Make<google::protobuf::FileDescriptorProto>("descriptor", inputs),
      Make<google::protobuf::Struct>("struct", inputs),
  };
}

long Nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  std::string command = argc > 1 ? argv[1] : "";
  if (command == "check" && argc == 4) {
    for (auto& subject : Subjects(argv[2])) subject.results(argv[3]);
  } else if (command == "time" && argc == 4) {
    long limit = atol(argv[3]) * 1000000;
    for (auto& subject : Subjects(argv[2])) {
      for (auto& operation : subject.operations) {
        operation.run(1);
        long count = 1, time;
        while (true) {
          long start = Nanoseconds();
          operation.run(count);
          time = Nanoseconds() - start;
          if (time >= limit) break;
          count = time < limit / 100 ? count * 10 : std::max(count + 1, count * limit / time + 1);
        }
        printf("%s %s %f\n", subject.name.c_str(), operation.name.c_str(), double(time) / count);
      }
    }
  } else if (command == "run" && argc == 6) {
    for (auto& subject : Subjects(argv[2])) {
      if (subject.name != argv[3]) continue;
      for (auto& operation : subject.operations) {
        if (operation.name == argv[4]) operation.run(atol(argv[5]));
      }
    }
  } else {
    fprintf(stderr, "usage: codec check|time|run INPUTS ...\n");
    return 64;
  }
}
