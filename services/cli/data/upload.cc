#include "services/cli/data/upload.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "services/cli/data/proven_bytes.h"

namespace stagecoach {
namespace {

constexpr int kPreparedParts = 4096;  // of a call, as data_sets.proto has it
// Uploads of one part by several clients take turns; each turn that another one won counts.
constexpr int kMostLostTurns = 20;
constexpr int kMostPuts = 3;

using OpenPart = std::function<ReadPart(int64_t offset)>;

struct MissingPart {
  StoredObject object;
  int64_t bytes = 0;
  int64_t counted = 0;  // of them data: a manifest has none
  OpenPart open;
  const LocalPart* part = nullptr;  // null: the manifest
  std::string what;                 // for errors: its file, or its first one
};

class Uploader {
 public:
  Uploader(DataClient& client, const OnUploaded& on_uploaded, StopSignal* stop,
           const OnChanged& on_changed)
      : client_(client), on_uploaded_(on_uploaded), stop_(stop), on_changed_(on_changed) {}

  absl::StatusOr<v1::DataSet> Run(const LocalParts& parts, const DataSetName& name) {
    const std::function<void()> stopper = client_.Stopper();
    const StopSignal::Registration on_stop(stop_, stopper);
    v1::PutDataSetRequest request;
    request.set_manifest_sha256(parts.manifest_sha256);
    request.set_name(name.name);
    request.set_replace(name.replace);
    again_ = name.again;
    for (int left = kMostPuts;;) {
      RETURN_IF_ERROR(UploadMissing(parts));
      again_ = false;  // what is there now is new
      absl::StatusOr<v1::PutDataSetResponse> put = client_.Put(request);
      if (put.ok()) return std::move(*put->mutable_data_set());
      // The removal of another set took a part with it that was there before.
      if (!absl::IsFailedPrecondition(put.status()) || --left == 0) return put.status();
    }
  }

 private:
  absl::Status UploadMissing(const LocalParts& parts) {
    missing_.clear();
    RETURN_IF_ERROR(Prepare(parts));
    done_ = total_ = 0;
    for (const MissingPart& part : missing_) total_ += part.counted;
    on_uploaded_(0, total_);
    for (const MissingPart& part : missing_) RETURN_IF_ERROR(UploadPart(part));
    return absl::OkStatus();
  }

  // The manifest comes last: it is small, and useless without the others.
  absl::Status Prepare(const LocalParts& parts) {
    std::vector<MissingPart> all;
    for (const LocalPart& part : parts.parts) {
      std::string what = ShownName(part.files.front()->here);
      if (part.files.size() > 1) {
        absl::StrAppend(&what, ", or one of the ", part.files.size() - 1, " behind it");
      }
      all.push_back({{.name = part.sha256, .grant = ""},
                     part.bytes,
                     part.bytes,
                     [&part](int64_t offset) -> ReadPart {
                       const auto reader = std::make_shared<PartReader>(part, offset);
                       return [reader](std::span<std::byte> to) { return reader->Read(to); };
                     },
                     &part,
                     std::move(what)});
    }
    const std::string& manifest = parts.manifest;
    all.push_back({{.name = parts.manifest_sha256, .grant = ""},
                   std::ssize(manifest),
                   0,
                   [&manifest](int64_t offset) -> ReadPart {
                     return [&manifest, offset](std::span<std::byte> to) mutable {
                       std::memcpy(to.data(), manifest.data() + offset, to.size());
                       offset += std::ssize(to);
                       return absl::OkStatus();
                     };
                   },
                   nullptr,
                   "the list of files"});
    for (size_t first = 0; first < all.size(); first += kPreparedParts) {
      const size_t count = std::min<size_t>(kPreparedParts, all.size() - first);
      RETURN_IF_ERROR(PrepareSome(std::span(all).subspan(first, count)));
    }
    return absl::OkStatus();
  }

  absl::Status PrepareSome(std::span<MissingPart> parts) {
    v1::PrepareUploadRequest request;
    request.set_again(again_);
    for (const MissingPart& part : parts) {
      v1::DataPart& entry = *request.add_parts();
      entry.set_sha256(part.object.name);
      entry.set_bytes(part.bytes);
    }
    ASSIGN_OR_RETURN(const v1::PrepareUploadResponse response, client_.PrepareUpload(request));
    for (const int32_t index : response.missing()) {
      if (index < 0 || index >= std::ssize(parts)) {
        return absl::DataLossError(
            absl::StrCat("the coordinator asks for part ", index, " of ", parts.size()));
      }
      MissingPart& part = parts[static_cast<size_t>(index)];
      part.object = {absl::StrCat(response.folder(), "/", part.object.name), response.grant()};
      missing_.push_back(std::move(part));
    }
    return absl::OkStatus();
  }

  // Grants end, and with the coordinator's process too. False: the part has come meanwhile.
  absl::StatusOr<bool> RenewGrant(MissingPart* part) {
    v1::PrepareUploadRequest request;
    v1::DataPart& entry = *request.add_parts();
    entry.set_sha256(NameOf(part->object.name));
    entry.set_bytes(part->bytes);
    ASSIGN_OR_RETURN(const v1::PrepareUploadResponse response, client_.PrepareUpload(request));
    part->object.grant = response.grant();
    return !response.missing().empty();
  }

  absl::Status UploadPart(MissingPart part) {
    int64_t renewed_at = -1;  // a grant that opens nothing is no reason to ask for ever
    while (true) {
      const absl::Status status = UploadGranted(part);
      if (!absl::IsPermissionDenied(status) || sent_ == renewed_at) return status;
      renewed_at = sent_;
      ASSIGN_OR_RETURN(const bool missing, RenewGrant(&part));
      if (!missing) return Done(part);
    }
  }

  absl::Status ChangedWhileSent(const MissingPart& part) {
    if (on_changed_ && part.part != nullptr) on_changed_(*part.part);
    return absl::FailedPreconditionError(
        absl::StrCat(part.what,
                     ": was changed while it was uploaded; run the command again when "
                     "nothing writes the file"));
  }

  absl::Status Done(const MissingPart& part) {
    done_ += part.counted;
    on_uploaded_(done_, total_);
    return absl::OkStatus();
  }

  absl::Status UploadGranted(const MissingPart& part) {
    ASSIGN_OR_RETURN(const bool direct, IsDirect(part));
    if (direct) return UploadDirect(part);
    bool began_here = false;  // every byte of it is from here
    int lost_turns = 0;
    while (true) {
      ASSIGN_OR_RETURN(const StoreClient::Size there, SizeOf(part));
      if (there.complete) break;
      if (there.committed > part.bytes) return ChangedWhileSent(part);
      began_here = began_here || there.committed == 0;
      const absl::Status status = AppendFrom(part, there.committed, nullptr);
      if (status.ok()) break;
      // The server says both also of bytes that have another digest than the part's name.
      if (!absl::IsDataLoss(status) && !absl::IsInvalidArgument(status)) return Told(status);
      ASSIGN_OR_RETURN(const StoreClient::Size left, SizeOf(part));
      if (left.complete) break;
      // Bytes that another upload brought may have been those of a changed file: they are gone now.
      if (left.committed == 0 && began_here) return ChangedWhileSent(part);
      if (++lost_turns > kMostLostTurns) return Told(status);
    }
    return Done(part);
  }

  // A bucket compares no SHA-256, so this client does before the object is complete.
  absl::Status UploadDirect(const MissingPart& part) {
    for (int lost_turns = 0;;) {
      ASSIGN_OR_RETURN(const StoreClient::Size there, SizeOf(part));
      if (there.complete && !again_) break;
      Sha256 hash;
      const ReadPart read = part.open(0);
      const ReadPart read_until_stop = [&](std::span<std::byte> to) {
        return stop_->requested() ? stop_->reason() : read(to);
      };
      ASSIGN_OR_RETURN(const int64_t proven,
                       ProvenBytes(there.uploaded, part.bytes, read_until_stop, &hash));
      const absl::Status status = AppendFrom(part, proven, &hash);
      if (status.ok()) break;
      // Another client completed the upload that both sent to, or replaced a part of it.
      if (!absl::IsDataLoss(status) || ++lost_turns > kMostLostTurns) return Told(status);
    }
    return Done(part);
  }

  absl::StatusOr<bool> IsDirect(const MissingPart& part) {
    const absl::StatusOr<bool> direct = client_.IsDirect(part.object);
    if (!direct.ok()) return Told(direct.status());
    return direct;
  }

  absl::StatusOr<StoreClient::Size> SizeOf(const MissingPart& part) {
    const absl::StatusOr<StoreClient::Size> found = client_.Find(part.object);
    if (absl::IsNotFound(found.status())) return StoreClient::Size{};
    if (!found.ok()) return Told(found.status());
    return found;
  }

  // hash: of the bytes before `at`; null: the coordinator compares.
  absl::Status AppendFrom(const MissingPart& part, int64_t at, Sha256* hash) {
    on_uploaded_(done_ + std::min(at, part.counted), total_);
    const ReadPart read = part.open(at);
    while (true) {
      if (stop_->requested()) return stop_->reason();
      piece_.resize(static_cast<size_t>(std::min(SentPieceBytes(part.bytes), part.bytes - at)));
      RETURN_IF_ERROR(read(piece_));
      const bool last = at + std::ssize(piece_) == part.bytes;
      if (hash != nullptr) {
        hash->Update(piece_);
        if (last && hash->Hex() != NameOf(part.object.name)) return ChangedWhileSent(part);
      }
      RETURN_IF_ERROR(client_.Append(part.object, at, piece_, last));
      at += std::ssize(piece_);
      sent_ += std::ssize(piece_);
      on_uploaded_(done_ + std::min(at, part.counted), total_);
      if (last) return absl::OkStatus();
    }
  }

  // A stop cancels calls, whose words say less.
  absl::Status Told(const absl::Status& status) const {
    return stop_->requested() ? stop_->reason() : status;
  }

  DataClient& client_;
  const OnUploaded& on_uploaded_;
  StopSignal* const stop_;
  const OnChanged& on_changed_;
  std::vector<MissingPart> missing_;
  std::vector<std::byte> piece_;
  int64_t done_ = 0, total_ = 0;
  int64_t sent_ = 0;  // of all parts, by this process
  bool again_ = false;
};

}  // namespace

absl::StatusOr<v1::DataSet> Upload(DataClient& client, const LocalParts& parts,
                                   const DataSetName& name, const OnUploaded& on_uploaded,
                                   StopSignal* stop, const OnChanged& on_changed) {
  return Uploader(client, on_uploaded, stop, on_changed).Run(parts, name);
}

}  // namespace stagecoach
