// store-bench FOLDER: MiB a second into and out of the coordinator's store over loopback, beside
// gRPC alone with the same messages (a server that drops what it gets, and sends zeros), in turn;
// then how long a health check of the same server takes, idle and beside four uploads at full
// speed. FOLDER is a new one for the files. Prints a table;
// docs/benchmarks.md has its results.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/store/remote_store_files.h"
#include "services/common/store/store_names.h"
#include "services/coordinator/store/store_service.h"
#include "stagecoach/v1/store.grpc.pb.h"

namespace stagecoach {
namespace {

constexpr size_t kBytes = size_t{512} << 20;
constexpr int kRounds = 5, kUploads = 4, kChecks = 1000;
constexpr char kBegun[] = "checkpoints/job/.tmp-1-4-0123456789abcdef";

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Plain final : public v1::StoreService::Service {
 public:
  grpc::Status WriteObject(grpc::ServerContext*, grpc::ServerReader<v1::WriteObjectRequest>* parts,
                           v1::WriteObjectResponse*) override {
    v1::WriteObjectRequest part;
    while (parts->Read(&part)) continue;
    return grpc::Status::OK;
  }
  grpc::Status ReadObject(grpc::ServerContext*, const v1::ReadObjectRequest*,
                          grpc::ServerWriter<v1::ReadObjectResponse>* parts) override {
    v1::ReadObjectResponse part;
    part.mutable_data()->resize(kStorePartBytes);
    for (size_t sent = 0; sent < kBytes; sent += kStorePartBytes) parts->Write(part);
    return grpc::Status::OK;
  }
};

class Server {
 public:
  explicit Server(grpc::Service* service) {
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    server_ = std::make_unique<GrpcServer>(
        options, std::vector<GrpcServer::NamedService>{{"stagecoach.v1.StoreService", service}},
        nullptr);
    CHECK_OK(server_->Start());
    server_->SetServing(true);
  }
  ~Server() { server_->Shutdown(0); }
  std::shared_ptr<grpc::Channel> Dial() const {
    return MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                              grpc::InsecureChannelCredentials());
  }

 private:
  std::unique_ptr<GrpcServer> server_;
};

double PlainUpload(const Server& server) {
  const auto stub = v1::StoreService::NewStub(server.Dial());
  grpc::ClientContext context;
  v1::WriteObjectResponse response;
  v1::WriteObjectRequest part;
  part.mutable_data()->resize(kStorePartBytes);
  const double begin = Seconds();
  const auto stream = stub->WriteObject(&context, &response);
  for (size_t sent = 0; sent < kBytes; sent += kStorePartBytes) CHECK(stream->Write(part));
  stream->WritesDone();
  CHECK(stream->Finish().ok());
  return Seconds() - begin;
}

double PlainFetch(const Server& server) {
  const auto stub = v1::StoreService::NewStub(server.Dial());
  grpc::ClientContext context;
  v1::ReadObjectResponse part;
  const double begin = Seconds();
  const auto stream = stub->ReadObject(&context, v1::ReadObjectRequest());
  size_t got = 0;
  while (stream->Read(&part)) got += part.data().size();
  CHECK(got == kBytes && stream->Finish().ok());
  return Seconds() - begin;
}

// As a stage uploads its shard.
double Upload(FileSystem& stage, const std::string& path, const std::vector<std::byte>& bytes) {
  CHECK_OK(stage.RemoveAll(path));
  const double begin = Seconds();
  const auto file = stage.Create(path).value();
  for (size_t at = 0; at < bytes.size(); at += size_t{1} << 20) {
    CHECK_OK(file->Append(std::span(bytes).subspan(at, size_t{1} << 20)));
  }
  CHECK_OK(file->Sync());
  return Seconds() - begin;
}

double Fetch(FileSystem& stage, const std::string& path, std::vector<std::byte>* bytes) {
  const double begin = Seconds();
  CHECK_OK(stage.Open(path).value()->Read(0, *bytes));
  return Seconds() - begin;
}

void Check(const Server& server, const char* when) {
  const auto stub = grpc::health::v1::Health::NewStub(server.Dial());
  std::vector<double> times;
  for (int i = 0; i < kChecks; ++i) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    grpc::health::v1::HealthCheckResponse response;
    const double begin = Seconds();
    CHECK(stub->Check(&context, grpc::health::v1::HealthCheckRequest(), &response).ok());
    times.push_back(1e3 * (Seconds() - begin));
  }
  std::sort(times.begin(), times.end());
  std::printf("| health check %s | %.2f | %.2f | %.2f |\n", when, times[times.size() / 2],
              times[times.size() * 99 / 100], times.back());
}

void Run(const std::string& folder) {
  std::filesystem::create_directories(absl::StrCat(folder, "/", kBegun));
  const ObjectGrants grants;
  ObjectFiles files({.checkpoints = absl::StrCat(folder, "/checkpoints"),
                     .exports = absl::StrCat(folder, "/exports"),
                     .data = absl::StrCat(folder, "/data")});
  StoreService store(&files, &grants);
  Plain plain;
  const Server store_server(&store), plain_server(&plain);
  RemoteStoreFiles stage(PosixFileSystem(), {.dial = [&] { return store_server.Dial(); }});
  const std::string name = absl::StrCat(kStorePrefix, kBegun);
  stage.Admit(name, grants.Make(kBegun, ObjectGrants::Use::kWrite));

  std::vector<std::byte> bytes(kBytes, std::byte{1});
  std::vector<double> up, down, plain_up, plain_down, up_ratios, down_ratios;
  for (int round = 0; round <= kRounds; ++round) {
    const double one = PlainUpload(plain_server), two = Upload(stage, name + "/x", bytes);
    const double three = PlainFetch(plain_server), four = Fetch(stage, name + "/x", &bytes);
    if (round == 0) continue;
    plain_up.push_back(one), up.push_back(two), up_ratios.push_back(one / two);
    plain_down.push_back(three), down.push_back(four), down_ratios.push_back(three / four);
  }
  constexpr double kMib = kBytes / 1048576.0;
  std::printf("| MiB/s | store | gRPC alone | ratio |\n| --- | --- | --- | --- |\n");
  std::printf("| into it | %.0f | %.0f | %.2f |\n", kMib / Median(up), kMib / Median(plain_up),
              Median(up_ratios));
  std::printf("| out of it | %.0f | %.0f | %.2f |\n\n", kMib / Median(down),
              kMib / Median(plain_down), Median(down_ratios));

  std::printf("| ms | median | 99 %% | longest |\n| --- | --- | --- | --- |\n");
  Check(store_server, "idle");
  std::atomic<bool> stop{false};
  std::vector<std::thread> uploads;
  for (int i = 0; i < kUploads; ++i) {
    uploads.emplace_back([&, i] {
      while (!stop) Upload(stage, absl::StrCat(name, "/beside-", i), bytes);
    });
  }
  Check(store_server, "beside 4 uploads");
  stop = true;
  for (std::thread& upload : uploads) upload.join();
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) {
  if (argc != 2 || std::filesystem::exists(argv[1])) {
    std::fprintf(stderr, "store-bench FOLDER: a new folder for the files, of 2.5 GiB\n");
    return 2;
  }
  stagecoach::Run(argv[1]);
  std::filesystem::remove_all(argv[1]);
  return 0;
}
