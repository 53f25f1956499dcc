#include "services/coordinator/store/store_service.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/grpc/own_error.h"
#include "services/common/store/store_names.h"
#include "services/common/store/store_parts.h"

namespace stagecoach {
namespace {

constexpr size_t kMostTasks = 1024;  // of a thread; a call has one at most

// A caller that is gone without a word keeps its place until then.
absl::Status CheckDeadline(const grpc::CallbackServerContext& context) {
  const auto most = std::chrono::system_clock::now() +
                    std::chrono::seconds(static_cast<int>(kMostStoreCallSeconds));
  if (context.deadline() <= most) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "deadline: a call of the store must have one, of at most ", kMostStoreCallSeconds, " s"));
}

// Marked, so that the caller knows it from a broken connection.
grpc::Status Told(const absl::Status& status, grpc::CallbackServerContext* context) {
  if (!status.ok()) MarkOwnError(context);
  return ToGrpc(status);
}

// A message that a damaged connection changed says nothing of its sender.
template <typename Message>
absl::Status CheckIfTold(const Message& message) {
  Message copy = message;
  return copy.has_checksum() ? CheckChecksum(&copy) : absl::OkStatus();
}

}  // namespace

// Counts a stream from its grant to its end.
class StoreService::Turn {
 public:
  Turn(StoreService& service, const std::string& name)
      : share_(ShareOf(service, AreaOf(name))), number_(++share_.streams) {}
  ~Turn() { --share_.streams; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  absl::Status ok() const {
    if (number_ <= share_.most) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        share_.most, " streams of the store are under way for ", share_.whose, "; try again"));
  }

 private:
  struct Share {
    std::atomic<int>& streams;
    int most;
    const char* whose;
  };
  static Share ShareOf(StoreService& service, ObjectArea area) {
    if (area == ObjectArea::kCheckpoint) {
      return {service.stage_streams_, kMostStageStreams, "stages"};
    }
    if (area == ObjectArea::kDataSet) {
      return {service.data_streams_, kMostDataStreams, "readers of data sets"};
    }
    return {service.client_streams_, kMostClientStreams, "clients"};
  }

  const Share share_;
  const int number_;
};

// Sends one part after the other. One thing is under way at any time: a task or a write.
class StoreService::Reader final : public grpc::ServerWriteReactor<v1::ReadObjectResponse> {
 public:
  Reader(StoreService& service, grpc::CallbackServerContext* context,
         const v1::ReadObjectRequest& request)
      : service_(service), context_(context), request_(request), thread_(service.NextThread()) {
    const absl::Status status = CheckDeadline(*context);
    if (status.ok()) {
      Post([this] { Begin(); });
    } else {
      End(status);
    }
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(absl::CancelledError("the caller is gone"));
    Post([this] { SendPart(); });
  }
  void OnDone() override { delete this; }

 private:
  void Post(TaskThread::Task task) {
    if (!thread_->TryPost(std::move(task))) {
      End(absl::UnavailableError("the store is too busy, or shuts down; try again"));
    }
  }
  void End(const absl::Status& status) { Finish(Told(status, context_)); }

  absl::Status Open() {
    RETURN_IF_ERROR(CheckIfTold(request_));
    RETURN_IF_ERROR(
        service_.CheckCaller(request_.name(), request_.grant(), ObjectGrants::Use::kRead));
    RETURN_IF_ERROR(service_.CheckRelayed(request_.name()));
    turn_.emplace(service_, request_.name());
    RETURN_IF_ERROR(turn_->ok());
    ASSIGN_OR_RETURN(file_, service_.files_->Open(request_.name()));
    const int64_t size = file_->size();
    next_ = request_.offset();
    if (next_ < 0 || next_ > size || request_.bytes() < 0 || request_.bytes() > size - next_) {
      return absl::OutOfRangeError(absl::StrCat("offset=", next_, ", bytes=", request_.bytes(),
                                                ": store object ", request_.name(), " has ", size,
                                                " bytes"));
    }
    end_ = request_.bytes() > 0 ? next_ + request_.bytes() : size;
    return absl::OkStatus();
  }

  void Begin() {
    if (const absl::Status status = Open(); !status.ok()) return End(status);
    SendPart();
  }

  void SendPart() {
    if (next_ == end_) return End(absl::OkStatus());
    std::string& data = *part_.mutable_data();
    data.resize(std::min<size_t>(static_cast<size_t>(end_ - next_), kStorePartBytes));
    const absl::Status read = file_->Read(next_, std::as_writable_bytes(std::span(data)));
    if (!read.ok()) {  // its text has the path
      return End(absl::Status(read.code(), absl::StrCat("store object ", request_.name(),
                                                        " cannot be read at byte ", next_)));
    }
    next_ += static_cast<int64_t>(data.size());
    part_.set_crc32c(CrcOf(part_));
    StartWrite(&part_);
  }

  StoreService& service_;
  grpc::CallbackServerContext* const context_;
  const v1::ReadObjectRequest request_;
  std::optional<Turn> turn_;
  TaskThread* const thread_;
  std::unique_ptr<ReadableFile> file_;
  int64_t next_ = 0, end_ = 0;
  v1::ReadObjectResponse part_;
};

// Takes one part after the other. One thing is under way at any time: a read or a task.
class StoreService::Writer final : public grpc::ServerReadReactor<v1::WriteObjectRequest> {
 public:
  Writer(StoreService& service, grpc::CallbackServerContext* context,
         v1::WriteObjectResponse* response)
      : service_(service), context_(context), response_(response), thread_(service.NextThread()) {
    const absl::Status status = CheckDeadline(*context);
    if (status.ok()) {
      StartRead(&part_);
    } else {
      End(status);
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {  // no more, gone, or a message that cannot be read; what came is committed
      End(context_->IsCancelled() ? absl::CancelledError("the caller is gone") : said_);
      return;
    }
    Post(thread_, [this] {
      if (const absl::Status status = Take(); !status.ok()) return End(status);
      if (!part_.finish_write()) return StartRead(&part_);
      const bool data = upload_->area() == ObjectArea::kDataPart;
      Post(data ? &service_.data_sync_ : &service_.sync_, [this] { End(upload_->Finish()); });
    });
  }
  void OnDone() override { delete this; }

 private:
  void Post(TaskThread* thread, TaskThread::Task task) {
    if (!thread->TryPost(std::move(task))) {
      End(absl::UnavailableError("the store is too busy, or shuts down; try again"));
    }
  }
  void End(const absl::Status& status) { Finish(Told(status, context_)); }

  absl::Status Take() {
    const ObjectArea area = upload_ != nullptr ? upload_->area() : AreaOf(part_.name());
    if (part_.has_crc32c() || area != ObjectArea::kDataPart) RETURN_IF_ERROR(CheckCrc(part_));
    if (part_.data().size() > kStorePartBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "data: ", part_.data().size(), " bytes; a part has at most ", kStorePartBytes));
    }
    if (upload_ == nullptr) {
      RETURN_IF_ERROR(service_.CheckCaller(part_.name(), part_.grant(), ObjectGrants::Use::kWrite));
      RETURN_IF_ERROR(service_.CheckRelayed(part_.name()));
      turn_.emplace(service_, part_.name());
      RETURN_IF_ERROR(turn_->ok());
      ASSIGN_OR_RETURN(upload_, service_.files_->BeginUpload(part_.name()));
      said_ = absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const int64_t size,
                     upload_->Append(part_.write_offset(), std::as_bytes(std::span(part_.data()))));
    response_->set_committed_size(size);
    SetChecksum(response_);
    return absl::OkStatus();
  }

  StoreService& service_;
  grpc::CallbackServerContext* const context_;
  v1::WriteObjectResponse* const response_;
  std::optional<Turn> turn_;
  TaskThread* const thread_;
  std::unique_ptr<ObjectUpload> upload_;
  absl::Status said_ = absl::UnavailableError("no message came that could be read");
  v1::WriteObjectRequest part_;
};

StoreService::StoreService(ObjectFiles* files, const ObjectGrants* grants, S3Objects* bucket,
                           LinkedParts* linked)
    : files_(files),
      grants_(grants),
      bucket_(bucket),
      linked_(linked),
      even_("store-0", kMostTasks),
      odd_("store-1", kMostTasks),
      sync_("store-sync", kMostTasks),
      data_sync_("store-data", kMostTasks) {}

TaskThread* StoreService::NextThread() { return next_++ % 2 == 0 ? &even_ : &odd_; }

absl::Status StoreService::CheckCaller(const std::string& name, const std::string& grant,
                                       ObjectGrants::Use use) const {
  return grants_->Check(grant, FolderOf(name), use);
}

grpc::ServerUnaryReactor* StoreService::Unary(grpc::CallbackServerContext* context,
                                              std::function<absl::Status()> work) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  absl::Status status = CheckDeadline(*context);
  if (status.ok()) {
    const bool posted = NextThread()->TryPost(
        [reactor, context, work = std::move(work)] { reactor->Finish(Told(work(), context)); });
    if (posted) return reactor;
    status = absl::UnavailableError("the store is too busy, or shuts down; try again");
  }
  reactor->Finish(Told(status, context));
  return reactor;
}

grpc::ServerUnaryReactor* StoreService::FindObject(grpc::CallbackServerContext* context,
                                                   const v1::FindObjectRequest* request,
                                                   v1::FindObjectResponse* response) {
  return Unary(context, [this, request, response]() -> absl::Status {
    RETURN_IF_ERROR(CheckIfTold(*request));
    RETURN_IF_ERROR(CheckCaller(request->name(), request->grant(), ObjectGrants::Use::kRead));
    const std::string& name = request->name();
    if (!IsLinked(name) && InBucket(name)) {
      RETURN_IF_ERROR(bucket_->Find(name, response));
    } else {
      ASSIGN_OR_RETURN(const ObjectSize size,
                       IsLinked(name) ? linked_->Find(name) : files_->Find(name));
      response->set_committed_size(size.committed);
      response->set_complete(size.complete);
    }
    SetChecksum(response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* StoreService::RemoveObject(grpc::CallbackServerContext* context,
                                                     const v1::RemoveObjectRequest* request,
                                                     v1::RemoveObjectResponse*) {
  return Unary(context, [this, request]() -> absl::Status {
    RETURN_IF_ERROR(CheckIfTold(*request));
    RETURN_IF_ERROR(CheckCaller(request->name(), request->grant(), ObjectGrants::Use::kWrite));
    if (InBucket(request->name())) return bucket_->Remove(request->name());
    return files_->Remove(request->name());
  });
}

bool StoreService::InBucket(const std::string& name) const {
  return bucket_ != nullptr && bucket_->Has(name);
}

bool StoreService::IsLinked(const std::string& name) const {
  return linked_ != nullptr && linked_->Has(name);
}

absl::Status StoreService::CheckRelayed(const std::string& name) const {
  if (!InBucket(name) && !IsLinked(name)) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("store object ", name,
                   ": is in a bucket; ask LocateObject (an older program cannot: start "
                   "one of the coordinator's version)"));
}

absl::Status StoreService::CheckInBucket(const std::string& name) const {
  if (InBucket(name)) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("store object ", name, ": its bytes go through the coordinator"));
}

grpc::ServerUnaryReactor* StoreService::LocateObject(grpc::CallbackServerContext* context,
                                                     const v1::LocateObjectRequest* request,
                                                     v1::LocateObjectResponse* response) {
  return Unary(context, [this, request, response]() -> absl::Status {
    RETURN_IF_ERROR(CheckIfTold(*request));
    const bool reads = request->use() == v1::OBJECT_USE_READ;
    RETURN_IF_ERROR(CheckCaller(request->name(), request->grant(),
                                reads ? ObjectGrants::Use::kRead : ObjectGrants::Use::kWrite));
    const int64_t seconds = grants_->SecondsLeft(request->grant());
    if (IsLinked(request->name())) {
      RETURN_IF_ERROR(linked_->Locate(*request, seconds, response));
    } else {
      RETURN_IF_ERROR(CheckInBucket(request->name()));
      RETURN_IF_ERROR(bucket_->Locate(*request, seconds, response));
    }
    SetChecksum(response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* StoreService::CompleteObject(grpc::CallbackServerContext* context,
                                                       const v1::CompleteObjectRequest* request,
                                                       v1::CompleteObjectResponse*) {
  return Unary(context, [this, request]() -> absl::Status {
    RETURN_IF_ERROR(CheckIfTold(*request));
    RETURN_IF_ERROR(CheckCaller(request->name(), request->grant(), ObjectGrants::Use::kWrite));
    RETURN_IF_ERROR(CheckInBucket(request->name()));
    return bucket_->Complete(*request);
  });
}

grpc::ServerWriteReactor<v1::ReadObjectResponse>* StoreService::ReadObject(
    grpc::CallbackServerContext* context, const v1::ReadObjectRequest* request) {
  return new Reader(*this, context, *request);
}

grpc::ServerReadReactor<v1::WriteObjectRequest>* StoreService::WriteObject(
    grpc::CallbackServerContext* context, v1::WriteObjectResponse* response) {
  return new Writer(*this, context, response);
}

}  // namespace stagecoach
