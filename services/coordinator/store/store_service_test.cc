// The store over real connections: a stage's file system on one side, files on the other; streams
// that are cut, servers that begin anew, and callers that do not keep to the rules.
#include "services/coordinator/store/store_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/file_text.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/store/remote_store_files.h"
#include "services/common/store/store_names.h"
#include "services/common/store/store_parts.h"
#include "services/coordinator/store/local_store_files.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Use = ObjectGrants::Use;

constexpr char kBegun[] = "checkpoints/job/.tmp-1-4-0123456789abcdef";
constexpr char kStep[] = "checkpoints/job/step-000000000004";
constexpr char kShard[] = "layer-0000-0007.safetensors";

std::vector<std::byte> RandomBytes(size_t count) {
  std::mt19937_64 random(count);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class StoreServiceTest : public ::testing::Test {
 protected:
  StoreServiceTest() {
    std::filesystem::create_directories(folder_.File(kBegun));
    std::filesystem::create_directories(folder_.File(kStep));
    std::filesystem::create_directories(folder_.File("exports/job"));
    Serve("127.0.0.1:0");
    stage_.Admit(absl::StrCat(kStorePrefix, kBegun), grants_.Make(kBegun, Use::kWrite));
    stage_.Admit(absl::StrCat(kStorePrefix, kStep), grants_.Make(kStep, Use::kRead));
  }
  ~StoreServiceTest() override { Stop(); }

  void Serve(const std::string& address) {
    files_ = std::make_unique<ObjectFiles>(ObjectFolders{.checkpoints = folder_.File("checkpoints"),
                                                         .exports = folder_.File("exports"),
                                                         .records = folder_.File("records"),
                                                         .data = folder_.File("data")});
    service_ = std::make_unique<StoreService>(files_.get(), &grants_);
    GrpcServerOptions options;
    options.listen = address;
    server_ = std::make_unique<GrpcServer>(
        options,
        std::vector<GrpcServer::NamedService>{{"stagecoach.v1.StoreService", service_.get()}},
        nullptr);
    ASSERT_TRUE(server_->Start().ok());
    address_ = absl::StrCat("127.0.0.1:", server_->port());
  }
  void Stop() {
    if (server_ != nullptr) server_->Shutdown(0);
    server_.reset();
    service_.reset();
  }

  std::shared_ptr<grpc::Channel> Dial() {
    return MakeControlChannel(address_, grpc::InsecureChannelCredentials());
  }
  std::string At(const std::string& folder, const std::string& file = kShard) {
    return absl::StrCat(kStorePrefix, folder, "/", file);
  }
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_wait_for_ready(true);
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }
  static v1::WriteObjectRequest PartOf(const std::string& name, const std::string& grant,
                                       int64_t offset, const std::string& data) {
    v1::WriteObjectRequest part;
    part.set_name(name);
    part.set_grant(grant);
    part.set_write_offset(offset);
    part.set_data(data);
    part.set_crc32c(CrcOf(part));
    return part;
  }
  grpc::Status Write(const v1::WriteObjectRequest& part) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::WriteObjectResponse response;
    const auto stub = v1::StoreService::NewStub(Dial());
    const auto stream = stub->WriteObject(&context, &response);
    stream->Write(part);
    stream->WritesDone();
    return stream->Finish();
  }
  grpc::Status Find(const std::string& name, const std::string& grant) {
    v1::FindObjectRequest request;
    request.set_name(name);
    request.set_grant(grant);
    v1::FindObjectResponse response;
    grpc::ClientContext context;
    SetDeadline(&context);
    return v1::StoreService::NewStub(Dial())->FindObject(&context, request, &response);
  }

  const TemporaryFolder folder_;
  const ObjectGrants grants_;
  std::unique_ptr<ObjectFiles> files_;
  std::unique_ptr<StoreService> service_;
  std::unique_ptr<GrpcServer> server_;
  std::string address_;
  RemoteStoreFiles stage_{PosixFileSystem(), {.dial = [this] { return Dial(); }}};
};

TEST_F(StoreServiceTest, WhatAStageWritesTheCoordinatorHasAndStagesRead) {
  const std::vector<std::byte> bytes = RandomBytes((size_t{40} << 20) + 7);
  const auto file = stage_.Create(At(kBegun));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(std::span(bytes).first(5)).ok());
  ASSERT_TRUE((*file)->Append(std::span(bytes).subspan(5)).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.File(absl::StrCat(kBegun, "/", kShard))));
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_EQ(FileText(folder_.File(absl::StrCat(kBegun, "/", kShard))), TextOf(bytes));
  EXPECT_EQ(stage_.Create(At(kBegun)).status().code(), absl::StatusCode::kAlreadyExists);

  std::filesystem::rename(folder_.File(absl::StrCat(kBegun, "/", kShard)),
                          folder_.File(absl::StrCat(kStep, "/", kShard)));
  const auto back = stage_.Open(At(kStep));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ((*back)->size(), static_cast<int64_t>(bytes.size()));
  std::vector<std::byte> all(bytes.size()), some(1000);
  ASSERT_TRUE((*back)->Read(0, all).ok());
  EXPECT_EQ(all, bytes);
  ASSERT_TRUE((*back)->Read(3'000'000, some).ok());
  EXPECT_TRUE(std::equal(some.begin(), some.end(), bytes.begin() + 3'000'000));
  EXPECT_EQ((*back)->Read(all.size() - 999, some).code(), absl::StatusCode::kDataLoss);
}

TEST_F(StoreServiceTest, AFileWithoutBytes) {
  const auto file = stage_.Create(At(kBegun));
  ASSERT_TRUE(file.ok() && (*file)->Close().ok());
  const auto back = stage_.Open(At(kBegun));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ((*back)->size(), 0);
  EXPECT_TRUE((*back)->Read(0, {}).ok());
}

// All connections end in the middle; the writer notices nothing.
TEST_F(StoreServiceTest, AnUploadGoesOnWhereItWas) {
  const std::vector<std::byte> bytes = RandomBytes(size_t{33} << 20);
  const auto file = stage_.Create(At(kBegun));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(std::span(bytes).first(size_t{17} << 20)).ok());
  const std::string address = address_;
  Stop();
  const std::string part = folder_.File(absl::StrCat(kBegun, "/", kShard, ".part"));
  constexpr size_t kSegment = size_t{16} << 20;
  EXPECT_EQ(std::filesystem::file_size(part), kSegment);
  // What the writer does not know of: some of the next segment had come.
  {
    std::ofstream more(part, std::ios::binary | std::ios::app);
    more << TextOf(std::span(bytes).subspan(kSegment, 100));
  }
  Serve(address);
  ASSERT_TRUE((*file)->Append(std::span(bytes).subspan(size_t{17} << 20)).ok());
  ASSERT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(FileText(folder_.File(absl::StrCat(kBegun, "/", kShard))), TextOf(bytes));
}

TEST_F(StoreServiceTest, GivesUpWhenNothingMovesAndSaysWhere) {
  RemoteStoreFiles hasty(
      PosixFileSystem(),
      {.dial = [this] { return Dial(); }, .call_seconds = 0.2, .give_up_seconds = 0.3});
  hasty.Admit(absl::StrCat(kStorePrefix, kBegun), grants_.Make(kBegun, Use::kWrite));
  const auto file = hasty.Create(At(kBegun));
  ASSERT_TRUE(file.ok()) << file.status();
  Stop();
  ASSERT_TRUE((*file)->Append(RandomBytes(10)).ok());
  const absl::Status status = (*file)->Sync();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat(kBegun, "/", kShard)));
  EXPECT_THAT(status.message(), HasSubstr("nothing has moved for 0.3 s"));
  EXPECT_EQ((*file)->Append(RandomBytes(1)), status);  // poisoned
}

TEST_F(StoreServiceTest, AWaitingWriterEndsWithItsProcess) {
  const auto file = stage_.Create(At(kBegun));
  ASSERT_TRUE(file.ok()) << file.status();
  Stop();
  stage_.Shutdown();
  ASSERT_TRUE((*file)->Append(RandomBytes(10)).ok());
  EXPECT_EQ((*file)->Sync().code(), absl::StatusCode::kCancelled);
}

// Of a stream that was cut a part may still be on its way when its successor writes.
TEST_F(StoreServiceTest, ALaterCallEndsAnEarlierOne) {
  const std::string name = absl::StrCat(kBegun, "/", kShard);
  const auto first = files_->BeginUpload(name);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::vector<std::byte> bytes = RandomBytes(30);
  ASSERT_EQ(*(*first)->Append(0, std::span(bytes).first(10)), 10);
  const auto second = files_->BeginUpload(name);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*first)->Append(10, std::span(bytes).subspan(10)).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ((*second)->Append(9, std::span(bytes).subspan(9)).status().code(),
            absl::StatusCode::kOutOfRange);
  ASSERT_EQ(*(*second)->Append(10, std::span(bytes).subspan(10)), 30);
  ASSERT_TRUE((*second)->Finish().ok());
  EXPECT_EQ((*first)->Finish().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(FileText(folder_.File(name)), TextOf(bytes));
  // The answer was lost: the end is said again.
  const auto again = files_->BeginUpload(name);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*(*again)->Append(30, {}), 30);
  EXPECT_TRUE((*again)->Finish().ok());
  EXPECT_EQ((*again)->Append(30, bytes).status().code(), absl::StatusCode::kAlreadyExists);
}

// Symptom: an object that was completed between two looks of FindObject was "not there", and its
// writer gave up.
TEST_F(StoreServiceTest, AnObjectThatIsBeingCompletedIsFound) {
  for (int i = 0; i < 200; ++i) {
    const std::string name = absl::StrCat(kBegun, "/", i);
    const auto upload = files_->BeginUpload(name);
    ASSERT_TRUE(upload.ok() && (*upload)->Append(0, RandomBytes(1)).ok());
    std::thread finish([&] { EXPECT_TRUE((*upload)->Finish().ok()); });
    absl::StatusOr<ObjectSize> found;
    do {
      found = files_->Find(name);
      EXPECT_TRUE(found.ok()) << found.status();
    } while (found.ok() && !found->complete);
    finish.join();
  }
}

TEST_F(StoreServiceTest, ARemovedObjectIsWrittenAnew) {
  const auto old = stage_.Create(At(kBegun));
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE((*old)->Append(RandomBytes(size_t{17} << 20)).ok());
  ASSERT_TRUE(stage_.RemoveAll(At(kBegun)).ok());
  EXPECT_TRUE(stage_.RemoveAll(At(kBegun)).ok());
  EXPECT_EQ(stage_.Look(At(kBegun)).code(), absl::StatusCode::kNotFound);
  const auto anew = stage_.Create(At(kBegun));
  ASSERT_TRUE(anew.ok() && (*anew)->Append(RandomBytes(3)).ok() && (*anew)->Close().ok());
  EXPECT_EQ((*old)->Sync().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(FileText(folder_.File(absl::StrCat(kBegun, "/", kShard))), TextOf(RandomBytes(3)));
}

TEST_F(StoreServiceTest, NamesLeadNowhereElse) {
  folder_.Write("secret", "secret");
  std::filesystem::create_symlink(folder_.File("secret"),
                                  folder_.File(absl::StrCat(kStep, "/link")));
  for (const std::string name :
       {"", "secret", "/secret", "checkpoints/../secret", "checkpoints/job/../../secret",
        "checkpoints/job/..", "checkpoints//x/y", "checkpoints/Job/step-000000000004/x",
        "exports/../secret", "exports/job/../../secret", "journal/x/y", "exports/job/a/b",
        "records/../secret", "records/job/../../secret", "records/Job/metrics.jsonl",
        "records/metrics.jsonl", "records/job/a/b"}) {
    const grpc::Status status =
        Find(name, grants_.Make(name.substr(0, name.rfind('/')), Use::kWrite));
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_THAT(status.error_message(), Not(HasSubstr(folder_.path()))) << name;
  }
  const auto link = stage_.Open(At(kStep, "link"));
  EXPECT_EQ(link.status().code(), absl::StatusCode::kDataLoss) << link.status();
}

TEST_F(StoreServiceTest, OnlyShardsOfACheckpointThatIsBegunAreWritten) {
  const std::string step = absl::StrCat(kStep, "/", kShard);
  const std::string exported = "exports/job/model.safetensors";
  const std::string recorded = "records/job/metrics.jsonl";
  const std::string manifest = absl::StrCat(kBegun, "/MANIFEST.json");
  const std::string part = absl::StrCat(kBegun, "/x.part");
  for (const std::string& name : {step, exported, recorded, manifest, part}) {
    const std::string folder = name.substr(0, name.rfind('/'));
    const grpc::Status status = Write(PartOf(name, grants_.Make(folder, Use::kWrite), 0, "x"));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << name;
  }
  // Of a folder that nobody began, or whose coordinator has abandoned it.
  const std::string gone = "checkpoints/job/.tmp-1-8-0123456789abcdef";
  EXPECT_EQ(
      Write(PartOf(absl::StrCat(gone, "/x"), grants_.Make(gone, Use::kWrite), 0, "x")).error_code(),
      grpc::StatusCode::NOT_FOUND);
}

// A job that runs goes on writing its history.
TEST_F(StoreServiceTest, AFileMayGrowWhileItIsRead) {
  const std::string text(size_t{1} << 20, 'a');
  const std::string path = folder_.Write("records/job/metrics.jsonl", text);
  StoreClient client({.dial = [this] { return Dial(); }});
  const StoredObject object{"records/job/metrics.jsonl", grants_.Make("records/job", Use::kRead)};
  std::vector<std::byte> read(text.size());
  for (size_t at = 0; at < read.size(); at += read.size() / 4) {
    const auto piece = std::span(read).subspan(at, read.size() / 4);
    ASSERT_TRUE(client.Read(object, static_cast<int64_t>(at), piece).ok());
    std::ofstream(path, std::ios::app) << "more";
  }
  EXPECT_EQ(TextOf(read), text);
}

TEST_F(StoreServiceTest, EveryCallNeedsAGrant) {
  const std::string name = absl::StrCat(kBegun, "/x");
  for (const std::string& grant :
       {std::string(), std::string("w.1.0"), grants_.Make(kStep, Use::kWrite),
        grants_.Make(kBegun, Use::kRead)}) {
    EXPECT_EQ(Write(PartOf(name, grant, 0, "x")).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  }
  EXPECT_EQ(Find(name, grants_.Make(kStep, Use::kRead)).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  const auto other = stage_.Open(At("checkpoints/other/step-000000000004"));
  EXPECT_EQ(other.status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(StoreServiceTest, CallsThatDoNotKeepToTheRules) {
  const std::string name = absl::StrCat(kBegun, "/x"), grant = grants_.Make(kBegun, Use::kWrite);
  EXPECT_EQ(Write(PartOf(name, grant, 1, "x")).error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(Write(PartOf(name, grant, -1, "x")).error_code(), grpc::StatusCode::OUT_OF_RANGE);
  v1::WriteObjectRequest damaged = PartOf(name, grant, 0, "x");
  damaged.set_data("y");
  EXPECT_EQ(Write(damaged).error_code(), grpc::StatusCode::UNAVAILABLE);
  damaged.clear_crc32c();  // only a data set's part may do without
  EXPECT_EQ(Write(damaged).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Write(PartOf(name, grant, 0, std::string(kStorePartBytes + 1, 'x'))).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  // Without a deadline.
  v1::FindObjectRequest request;
  v1::FindObjectResponse response;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const grpc::Status status =
      v1::StoreService::NewStub(Dial())->FindObject(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("deadline"));
}

// Symptom: of a connection that flips bits, a message that could not be read was INVALID_ARGUMENT,
// and one with another name PERMISSION_DENIED: the job failed for good.
TEST_F(StoreServiceTest, WhatADamagedConnectionDoesMayPass) {
  const std::string name = absl::StrCat(kBegun, "/x"), grant = grants_.Make(kBegun, Use::kWrite);
  v1::FindObjectRequest find;
  find.set_name(name);
  find.set_grant(grant);
  SetChecksum(&find);
  find.set_name(absl::StrCat(kStep, "/x"));
  v1::FindObjectResponse found;
  grpc::ClientContext one;
  SetDeadline(&one);
  EXPECT_EQ(v1::StoreService::NewStub(Dial())->FindObject(&one, find, &found).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  v1::RemoveObjectRequest remove;
  remove.set_name(name);
  remove.set_grant(grant);
  SetChecksum(&remove);
  remove.set_name(absl::StrCat(kBegun, "/y"));
  v1::RemoveObjectResponse removed;
  grpc::ClientContext two;
  SetDeadline(&two);
  EXPECT_EQ(v1::StoreService::NewStub(Dial())->RemoveObject(&two, remove, &removed).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  // A stream whose only message cannot be read is to the server as one without any.
  grpc::ClientContext three;
  SetDeadline(&three);
  v1::WriteObjectResponse written;
  const auto stub = v1::StoreService::NewStub(Dial());
  const auto stream = stub->WriteObject(&three, &written);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Symptom: 128 streams without a grant, or one user's readers that did not read, kept every stage
// from its checkpoints.
TEST_F(StoreServiceTest, NobodyElseKeepsAStageFromItsCheckpoints) {
  folder_.Write("exports/job/model.safetensors", std::string(size_t{8} << 20, 'x'));
  const std::string exported = "exports/job/model.safetensors";
  struct Idle {
    grpc::ClientContext context;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::StoreService::Stub> stub;
    v1::WriteObjectResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::WriteObjectRequest>> writer;
    std::unique_ptr<grpc::ClientReader<v1::ReadObjectResponse>> reader;
  };
  std::vector<std::unique_ptr<Idle>> idle;
  std::shared_ptr<grpc::Channel> channel;
  v1::ReadObjectResponse part;
  v1::ReadObjectRequest read;
  read.set_name(exported);
  read.set_grant(grants_.Make("exports/job", Use::kRead));
  for (int i = 0; i < 2 * StoreService::kMostStageStreams; ++i) {
    if (i % 50 == 0) channel = Dial();
    auto one = std::make_unique<Idle>();
    one->channel = channel;
    one->stub = v1::StoreService::NewStub(channel);
    SetDeadline(&one->context);
    if (i % 3 == 0) {
      one->reader = one->stub->ReadObject(&one->context, read);
      if (i < StoreService::kMostClientStreams) {
        EXPECT_TRUE(one->reader->Read(&part));
      }
    } else {
      one->writer = one->stub->WriteObject(&one->context, &one->response);
    }
    idle.push_back(std::move(one));
  }
  const auto file = stage_.Create(At(kBegun));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(RandomBytes(100)).ok());
  EXPECT_TRUE((*file)->Sync().ok());
  for (const std::unique_ptr<Idle>& one : idle) {
    one->context.TryCancel();
    if (one->writer != nullptr) {
      EXPECT_FALSE(one->writer->Finish().ok());
    }
    if (one->reader != nullptr) {
      while (one->reader->Read(&part)) continue;
      one->reader->Finish();
    }
  }
}

TEST_F(StoreServiceTest, TheCoordinatorsOwnNamesAreItsFiles) {
  LocalStoreFiles local(PosixFileSystem(), folder_.File("checkpoints"));
  folder_.Write(absl::StrCat(kStep, "/MANIFEST.json"), "{}");
  EXPECT_TRUE(local.Look(At(kStep, "MANIFEST.json")).ok());
  EXPECT_EQ(local.List(absl::StrCat(LocalStoreFiles::Root(), "/job"))->size(), 2);
  EXPECT_TRUE(local.Look(folder_.File(kStep)).ok());
  const absl::Status none = local.Look(At(kStep, "none"));
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr(At(kStep, "none")));
  EXPECT_THAT(none.message(), Not(HasSubstr(folder_.path())));
}

}  // namespace
}  // namespace stagecoach
