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
#include "services/common/grpc/own_error.h"
#include "services/common/store/store_names.h"
#include "services/common/store/store_parts.h"

namespace stagecoach {
namespace {

// A caller that is gone without a word keeps its place until then.
absl::Status CheckDeadline(const grpc::CallbackServerContext& context) {
  const auto most = std::chrono::system_clock::now() +
                    std::chrono::seconds(static_cast<int>(kMostStoreCallSeconds));
  if (context.deadline() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "deadline: a call of the store must have one, of at most ", kMostStoreCallSeconds, " s"));
}

// Marked, so that the caller knows it from a broken connection.
grpc::Status Told(const absl::Status& status, grpc::CallbackServerContext* context) {
  if (!status.ok()) MarkOwnError(context);
  return ToGrpc(status);
}

}  // namespace

// Counts a call from its begin to its end.
class StoreService::Turn {
 public:
  explicit Turn(StoreService& service) : calls_(service.calls_), number_(++calls_) {}
  ~Turn() { --calls_; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  absl::Status ok() const {
    if (number_ <= kMostCalls) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(kMostCalls, " calls of the store are under way; try again"));
  }

 private:
  std::atomic<int>& calls_;
  const int number_;
};

// Sends one part after the other. One thing is under way at any time: a task or a write.
class StoreService::Reader final : public grpc::ServerWriteReactor<v1::ReadObjectResponse> {
 public:
  Reader(StoreService& service, grpc::CallbackServerContext* context,
         const v1::ReadObjectRequest& request)
      : service_(service),
        context_(context),
        request_(request),
        turn_(service),
        thread_(service.NextThread()) {
    absl::Status status = turn_.ok();
    if (status.ok()) status = CheckDeadline(*context);
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
      End(absl::UnavailableError("the coordinator shuts down"));
    }
  }
  void End(const absl::Status& status) { Finish(Told(status, context_)); }

  absl::Status Open() {
    RETURN_IF_ERROR(
        service_.CheckCaller(request_.name(), request_.grant(), ObjectGrants::Use::kRead));
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
  const Turn turn_;
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
      : service_(service),
        context_(context),
        response_(response),
        turn_(service),
        thread_(service.NextThread()) {
    absl::Status status = turn_.ok();
    if (status.ok()) status = CheckDeadline(*context);
    if (status.ok()) {
      StartRead(&part_);
    } else {
      End(status);
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {  // the caller has no more, or is gone; what came is committed either way
      End(context_->IsCancelled() ? absl::CancelledError("the caller is gone") : said_);
      return;
    }
    Post(thread_, [this] {
      if (const absl::Status status = Take(); !status.ok()) return End(status);
      if (!part_.finish_write()) return StartRead(&part_);
      Post(&service_.sync_, [this] { End(upload_->Finish()); });
    });
  }
  void OnDone() override { delete this; }

 private:
  void Post(TaskThread* thread, TaskThread::Task task) {
    if (!thread->TryPost(std::move(task))) {
      End(absl::UnavailableError("the coordinator shuts down"));
    }
  }
  void End(const absl::Status& status) { Finish(Told(status, context_)); }

  absl::Status Take() {
    RETURN_IF_ERROR(CheckCrc(part_));
    if (upload_ == nullptr) {
      RETURN_IF_ERROR(service_.CheckCaller(part_.name(), part_.grant(), ObjectGrants::Use::kWrite));
      ASSIGN_OR_RETURN(upload_, service_.files_->BeginUpload(part_.name()));
      said_ = absl::OkStatus();
    }
    if (part_.data().size() > kStorePartBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "data: ", part_.data().size(), " bytes; a part has at most ", kStorePartBytes));
    }
    ASSIGN_OR_RETURN(const int64_t size,
                     upload_->Append(part_.write_offset(), std::as_bytes(std::span(part_.data()))));
    response_->set_committed_size(size);
    return absl::OkStatus();
  }

  StoreService& service_;
  grpc::CallbackServerContext* const context_;
  v1::WriteObjectResponse* const response_;
  const Turn turn_;
  TaskThread* const thread_;
  std::unique_ptr<ObjectUpload> upload_;
  absl::Status said_ = absl::InvalidArgumentError("name: no message came");
  v1::WriteObjectRequest part_;
};

// A call has one task in a queue at most.
StoreService::StoreService(ObjectFiles* files, const ObjectGrants* grants)
    : files_(files),
      grants_(grants),
      even_("store-0", 2 * kMostCalls),
      odd_("store-1", 2 * kMostCalls),
      sync_("store-sync", 2 * kMostCalls) {}

TaskThread* StoreService::NextThread() { return next_++ % 2 == 0 ? &even_ : &odd_; }

absl::Status StoreService::CheckCaller(const std::string& name, const std::string& grant,
                                       ObjectGrants::Use use) const {
  return grants_->Check(grant, FolderOf(name), use);
}

grpc::ServerUnaryReactor* StoreService::Unary(grpc::CallbackServerContext* context,
                                              std::function<absl::Status()> work) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto turn = std::make_shared<Turn>(*this);
  absl::Status status = turn->ok();
  if (status.ok()) status = CheckDeadline(*context);
  if (status.ok()) {
    const bool posted = NextThread()->TryPost([reactor, context, turn, work = std::move(work)] {
      reactor->Finish(Told(work(), context));
    });
    if (posted) return reactor;
    status = absl::UnavailableError("the coordinator shuts down");
  }
  reactor->Finish(Told(status, context));
  return reactor;
}

grpc::ServerUnaryReactor* StoreService::FindObject(grpc::CallbackServerContext* context,
                                                   const v1::FindObjectRequest* request,
                                                   v1::FindObjectResponse* response) {
  return Unary(context, [this, request, response]() -> absl::Status {
    RETURN_IF_ERROR(CheckCaller(request->name(), request->grant(), ObjectGrants::Use::kRead));
    ASSIGN_OR_RETURN(const ObjectSize size, files_->Find(request->name()));
    response->set_committed_size(size.committed);
    response->set_complete(size.complete);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* StoreService::RemoveObject(grpc::CallbackServerContext* context,
                                                     const v1::RemoveObjectRequest* request,
                                                     v1::RemoveObjectResponse*) {
  return Unary(context, [this, request]() -> absl::Status {
    RETURN_IF_ERROR(CheckCaller(request->name(), request->grant(), ObjectGrants::Use::kWrite));
    return files_->Remove(request->name());
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
