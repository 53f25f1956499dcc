// The cache over StoreClient and a real connection, which is cut and damaged now and then.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/testing/temporary_folder.h"
#include "services/common/data_sets/data_cache_testing.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/store/store_names.h"
#include "services/common/store/store_parts.h"

namespace stagecoach {
namespace {

class CutStore final : public v1::StoreService::Service {
 public:
  CutStore(const FakeDataStore* objects, uint32_t seed) : objects_(*objects), random_(seed) {}

  grpc::Status FindObject(grpc::ServerContext*, const v1::FindObjectRequest* request,
                          v1::FindObjectResponse* response) override {
    const std::string* const bytes = objects_.Find({request->name(), request->grant()});
    if (bytes == nullptr) return {grpc::StatusCode::NOT_FOUND, request->name()};
    response->set_committed_size(std::ssize(*bytes));
    response->set_complete(true);
    SetChecksum(response);
    return grpc::Status::OK;
  }

  grpc::Status ReadObject(grpc::ServerContext*, const v1::ReadObjectRequest* request,
                          grpc::ServerWriter<v1::ReadObjectResponse>* writer) override {
    const std::string* const bytes = objects_.Find({request->name(), request->grant()});
    if (bytes == nullptr) return {grpc::StatusCode::NOT_FOUND, request->name()};
    auto at = static_cast<size_t>(request->offset());
    const size_t end = at + static_cast<size_t>(request->bytes());
    while (at < end) {
      v1::ReadObjectResponse part;
      part.set_data(bytes->substr(at, std::min(end - at, kStorePartBytes)));
      at += part.data().size();
      part.set_crc32c(CrcOf(part));
      const uint32_t fate = Random() % 12;
      if (fate == 0) return {grpc::StatusCode::UNAVAILABLE, "cut"};
      if (fate == 1) part.mutable_data()->back() ^= 1;  // on its way
      writer->Write(part);
    }
    return grpc::Status::OK;
  }

 private:
  uint32_t Random() {
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<uint32_t>(random_());
  }
  const FakeDataStore& objects_;
  std::mutex mutex_;  // guards random_
  std::mt19937 random_;
};

TEST(DataCacheOverStore, AFileComesThroughConnectionsThatBreak) {
  constexpr uint32_t kSeed = 7;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  const TemporaryFolder folder;
  const std::string bytes = RandomBytes(9'000'001, kSeed);
  const FakeDataStore objects(std::string(64, 'a'), {{"in/large", bytes}});
  CutStore service(&objects, kSeed);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  StoreClient client(StoreClient::Options{.dial = [port] {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                               grpc::InsecureChannelCredentials());
  }});
  {
    DataCache cache(DataCache::Options{
        .folder = [&]() -> absl::StatusOr<std::string> { return folder.path(); },
        .size = [&](const StoredObject& object) -> absl::StatusOr<int64_t> {
          ASSIGN_OR_RETURN(const StoreClient::Size size, client.Find(object));
          return size.committed;
        },
        .read = [&](const StoredObject& object, int64_t offset,
                    std::span<std::byte> into) { return client.Read(object, offset, into); }});
    cache.Admit(objects.set(), {objects.folder(), objects.grant()});
    const auto file = cache.Open(objects.Path("in/large"), DataSets::Reading::kAll);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(ReadRange(*file, 0, file->bytes).value() == bytes);
  }
  client.Shutdown();
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace stagecoach
