// link-bench: one-way throughput of the gRPC link between two processes, beside raw TCP with the
// same one copy into the destination tensor. The variants alternate within every round, so that a
// noisy machine spoils them alike; what counts is the paired median of the ratios.
//
//   link-bench [--rounds=7] [--megabytes=512] [--capacity=8] [--chunk-kib=512] [--link-only=1]
//
// --link-only=1 leaves the raw variants out, for a profiler; the ratios then say nothing.
//
// The parent receives, the child sends. The child is started before gRPC is (a fork after its start
// would be undefined) and takes its orders on stdin.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/files/hash.h"
#include "stage/link/grpc/grpc_link_connector.h"
#include "stage/link/grpc/malloc_settings.h"
#include "stage/link/grpc/rpc_loop.h"

extern char** environ;

namespace stagecoach {
namespace {

struct Flags {
  int64_t rounds = 7, megabytes = 512, capacity = 8, chunk_kib = 512, link_only = 0;
  bool child = false;
  std::string Text() const {
    return absl::StrCat("--rounds=", rounds, " --megabytes=", megabytes, " --capacity=", capacity,
                        " --chunk-kib=", chunk_kib);
  }
};

enum class Variant { kRaw, kRawCrc, kLink };
constexpr Variant kVariants[] = {Variant::kRaw, Variant::kRawCrc, Variant::kLink};
constexpr const char* kVariantNames[] = {"raw", "rawcrc", "link"};
constexpr int64_t kSizes[] = {256 << 10, 1 << 20, 4 << 20};
constexpr int64_t kScratchBytes = 256 << 10;

const BoundaryId kBoundary{"bench", 1, 1, CellId(0)};

GrpcLinkConnector::Options ConnectorOptions(const Flags& flags) {
  GrpcLinkConnector::Options options;
  options.link.capacity_messages = static_cast<int>(flags.capacity);
  options.link.chunk_bytes = flags.chunk_kib << 10;
  return options;
}

// Wakes whoever waits for a link.
struct Bell {
  std::mutex mutex;  // guards rings
  std::condition_variable rung;
  uint64_t rings = 0;

  void Ring() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ++rings;
    }
    rung.notify_one();
  }
  template <typename Try>
  void Until(Link& link, Try attempt) {
    for (uint64_t seen = 0;;) {
      if (attempt()) return;
      CHECK_OK(link.status());
      std::unique_lock<std::mutex> lock(mutex);
      const bool woken =
          rung.wait_for(lock, std::chrono::seconds(30), [&] { return rings != seen; });
      CHECK(woken) << "the link stands still";
      seen = rings;
    }
  }
};

double CpuSeconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void WriteAll(int fd, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(fd, from, bytes);
    CHECK(written > 0) << "raw socket: " << std::strerror(errno);
    from += written;
    bytes -= static_cast<size_t>(written);
  }
}

Tensor NewTensor(Allocator& allocator, int64_t bytes) {
  absl::StatusOr<Tensor> tensor =
      MakeTensor(allocator, MemoryKind::kActivations, DType::kF32, Shape{bytes / 4});
  CHECK_OK(tensor.status());
  return *std::move(tensor);
}

// ---- the child: sends what it is told to, "VARIANT SIZE COUNT" a line.

void SendOverLink(Link& link, Bell& bell, const Tensor& tensor, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    TensorMessage message;
    message.kind = MessageKind::kActivation;
    message.fence = {kBoundary.job, kBoundary.term, kBoundary.generation, 0, 0};
    message.micro_batch = MicroBatchId(static_cast<int32_t>(i));
    message.tensors = {tensor};
    bell.Until(link, [&] { return link.TrySend(std::move(message)); });
  }
}

void SendRaw(int fd, const Tensor& tensor, int64_t count, bool crc) {
  for (int64_t i = 0; i < count; ++i) {
    if (crc) {
      const uint32_t sum = Crc32c(tensor.span());
      WriteAll(fd, &sum, sizeof(sum));
    }
    WriteAll(fd, tensor.raw(), static_cast<size_t>(tensor.bytes()));
  }
}

int RunChild(const Flags& flags) {
  int grpc_port = 0, raw_port = 0;
  std::cin >> grpc_port >> raw_port;
  const std::unique_ptr<Allocator> allocator = MakeHostAllocator(0);
  GrpcLinkConnector connector(ConnectorOptions(flags));
  Bell bell;
  std::unique_ptr<Link> link = connector.Dial(absl::StrCat("127.0.0.1:", grpc_port), kBoundary,
                                              *allocator, kAnyMessageBytes);
  link->SetReadyCallback([&bell] { bell.Ring(); });
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(raw_port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) << "raw connect";
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  std::string variant;
  int64_t size = 0, count = 0;
  while (std::cin >> variant >> size >> count) {
    const Tensor tensor = NewTensor(*allocator, size);
    std::memset(tensor.raw(), 0x5a, static_cast<size_t>(size));
    if (variant == "link") {
      SendOverLink(*link, bell, tensor, count);
    } else {
      SendRaw(fd, tensor, count, variant == "rawcrc");
    }
    std::cout << CpuSeconds(RUSAGE_SELF) << std::endl;
  }
  close(fd);
  return 0;
}

// ---- the parent: receives and measures.

void ReceiveFromLink(Link& link, Bell& bell, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    bell.Until(link, [&] { return link.TryReceive().has_value(); });
  }
}

void ReadAll(int fd, std::byte* scratch, std::byte* target, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t got = read(fd, scratch, static_cast<size_t>(std::min(bytes, kScratchBytes)));
    CHECK(got > 0) << "raw socket: " << std::strerror(errno);
    std::memcpy(target, scratch, static_cast<size_t>(got));
    target += got;
    bytes -= got;
  }
}

void ReceiveRaw(int fd, Allocator& allocator, int64_t size, int64_t count, bool crc) {
  const Tensor scratch = NewTensor(allocator, kScratchBytes);
  for (int64_t i = 0; i < count; ++i) {
    const Tensor tensor = NewTensor(allocator, size);
    uint32_t sum = 0;
    if (crc) ReadAll(fd, scratch.raw(), reinterpret_cast<std::byte*>(&sum), sizeof(sum));
    ReadAll(fd, scratch.raw(), tensor.raw(), size);
    CHECK(!crc || Crc32c(tensor.span()) == sum) << "raw bytes changed";
  }
}

struct Sample {
  double gigabytes_per_second = 0, cpu_seconds_per_gigabyte = 0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Parent {
 public:
  explicit Parent(const Flags& flags) : flags_(flags) { StartChild(); }

  int Run() {
    StartServers();
    std::printf("%s, medians of %ld rounds, %ld MB each\n", flags_.Text().c_str(), flags_.rounds,
                flags_.megabytes);
    std::printf("%8s %9s %9s %9s %9s %13s %13s %13s\n", "KiB", "raw GB/s", "raw+crc", "link GB/s",
                "link/raw", "link/raw+crc", "raw CPU s/GB", "link CPU s/GB");
    for (const int64_t size : kSizes) MeasureSize(size);
    link_.reset();
    connector_->Shutdown();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
    loop_->Stop();
    std::fclose(orders_);
    close(raw_fd_);
    int status = 0;
    waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }

 private:
  void StartChild() {
    int orders[2], answers[2];
    CHECK(pipe(orders) == 0 && pipe(answers) == 0) << "pipes";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, orders[0], 0);
    posix_spawn_file_actions_adddup2(&actions, answers[1], 1);
    for (const int fd : {orders[0], orders[1], answers[0], answers[1]}) {
      posix_spawn_file_actions_addclose(&actions, fd);
    }
    std::string capacity = absl::StrCat("--capacity=", flags_.capacity);
    std::string chunk = absl::StrCat("--chunk-kib=", flags_.chunk_kib);
    std::string name = "link-bench", child = "--child";
    char* arguments[] = {name.data(), child.data(), capacity.data(), chunk.data(), nullptr};
    CHECK(posix_spawn(&child_, "/proc/self/exe", &actions, nullptr, arguments, environ) == 0)
        << "start of the sending process";
    posix_spawn_file_actions_destroy(&actions);
    close(orders[0]);
    close(answers[1]);
    orders_ = fdopen(orders[1], "w");
    answers_ = fdopen(answers[0], "r");
  }

  void StartServers() {
    connector_ = std::make_unique<GrpcLinkConnector>(ConnectorOptions(flags_));
    grpc::ServerBuilder builder;
    int grpc_port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &grpc_port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(static_cast<int>(flags_.chunk_kib << 10) +
                                     kLinkMessageSlackBytes);
    builder.RegisterService(connector_->service());
    loop_ = std::make_unique<RpcLoop>(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    CHECK(server_ != nullptr) << "gRPC server";
    connector_->Serve(loop_.get());
    link_ = connector_->Accept(kBoundary, "", *allocator_, kAnyMessageBytes);
    link_->SetReadyCallback([this] { bell_.Ring(); });

    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0) << "bind";
    CHECK(listen(listener, 1) == 0) << "listen";
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    Order(absl::StrCat(grpc_port, " ", ntohs(address.sin_port)));
    raw_fd_ = accept(listener, nullptr, nullptr);
    CHECK(raw_fd_ >= 0) << "accept";
    close(listener);
  }

  void Order(const std::string& line) {
    std::fprintf(orders_, "%s\n", line.c_str());
    std::fflush(orders_);
  }

  Sample Measure(Variant variant, int64_t size, int64_t count) {
    const double cpu_before = CpuSeconds(RUSAGE_SELF) + child_cpu_;
    const auto start = std::chrono::steady_clock::now();
    Order(absl::StrCat(kVariantNames[static_cast<int>(variant)], " ", size, " ", count));
    if (variant == Variant::kLink) {
      ReceiveFromLink(*link_, bell_, count);
    } else {
      ReceiveRaw(raw_fd_, *allocator_, size, count, variant == Variant::kRawCrc);
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    CHECK(std::fscanf(answers_, "%lf", &child_cpu_) == 1) << "the sender's answer";
    const double gigabytes = static_cast<double>(size * count) * 1e-9;
    return {gigabytes / elapsed.count(),
            (CpuSeconds(RUSAGE_SELF) + child_cpu_ - cpu_before) / gigabytes};
  }

  void MeasureSize(int64_t size) {
    const int64_t count = std::max<int64_t>(1, flags_.megabytes * 1'000'000 / size);
    std::vector<double> speed[3], cpu[3], against_raw, against_crc;
    for (int64_t round = -1; round < flags_.rounds; ++round) {  // the first one warms up
      Sample samples[3];
      for (const Variant variant : kVariants) {
        if (flags_.link_only != 0 && variant != Variant::kLink) continue;
        samples[static_cast<int>(variant)] = Measure(variant, size, count);
      }
      if (round < 0) continue;
      for (int v = 0; v < 3; ++v) {
        speed[v].push_back(samples[v].gigabytes_per_second);
        cpu[v].push_back(samples[v].cpu_seconds_per_gigabyte);
      }
      against_raw.push_back(samples[2].gigabytes_per_second / samples[0].gigabytes_per_second);
      against_crc.push_back(samples[2].gigabytes_per_second / samples[1].gigabytes_per_second);
    }
    std::printf("%8ld %9.2f %9.2f %9.2f %9.2f %13.2f %13.2f %13.2f\n", size >> 10, Median(speed[0]),
                Median(speed[1]), Median(speed[2]), Median(against_raw), Median(against_crc),
                Median(cpu[0]), Median(cpu[2]));
    std::fflush(stdout);
  }

  const Flags flags_;
  const std::unique_ptr<Allocator> allocator_ = MakeHostAllocator(0);
  pid_t child_ = -1;
  FILE* orders_ = nullptr;
  FILE* answers_ = nullptr;
  double child_cpu_ = 0;
  std::unique_ptr<GrpcLinkConnector> connector_;
  std::unique_ptr<RpcLoop> loop_;
  std::unique_ptr<grpc::Server> server_;
  Bell bell_;
  std::unique_ptr<Link> link_;
  int raw_fd_ = -1;
};

bool ParseFlag(const std::string& argument, const std::string& name, int64_t* value) {
  const std::string prefix = absl::StrCat("--", name, "=");
  return absl::StartsWith(argument, prefix) &&
         absl::SimpleAtoi(argument.substr(prefix.size()), value) && *value > 0;
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) {
  using namespace stagecoach;  // NOLINT: the program is all there is here
  KeepReceiveBuffersMapped();
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--child") {
      flags.child = true;
    } else if (!ParseFlag(argument, "rounds", &flags.rounds) &&
               !ParseFlag(argument, "megabytes", &flags.megabytes) &&
               !ParseFlag(argument, "capacity", &flags.capacity) &&
               !ParseFlag(argument, "chunk-kib", &flags.chunk_kib) &&
               !ParseFlag(argument, "link-only", &flags.link_only)) {
      std::fprintf(stderr, "unknown flag %s\n%s\n", argv[i], Flags().Text().c_str());
      return 2;
    }
  }
  return flags.child ? RunChild(flags) : Parent(flags).Run();
}
