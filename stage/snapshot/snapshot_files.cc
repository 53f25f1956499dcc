#include "stage/snapshot/snapshot_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "checkpoint/names.h"

namespace stagecoach {

class SnapshotFiles::RemoteFile final : public ReadableFile {
 public:
  RemoteFile(SnapshotPeers* peers, std::string address, SnapshotRange range, int64_t size)
      : peers_(peers), address_(std::move(address)), range_(std::move(range)), size_(size) {}
  int64_t size() const override { return size_; }
  absl::Status Read(int64_t offset, std::span<std::byte> target) override {
    range_.offset = offset;
    while (!target.empty()) {
      const auto part = target.first(std::min<size_t>(target.size(), kSnapshotPartBytes));
      absl::Status got = peers_->Get(address_, range_, part);
      // What was changed on its way is asked for again: a bit that flips costs no steps.
      for (int again = 0; again < 2 && absl::IsDataLoss(got); ++again) {
        got = peers_->Get(address_, range_, part);
      }
      RETURN_IF_ERROR(Reason(got));
      range_.offset += static_cast<int64_t>(part.size());
      target = target.subspan(part.size());
      TickProgress();
    }
    return absl::OkStatus();
  }

 private:
  // Whoever is gone, or has let go of it since, may be asked again in another generation. Anything
  // else is a snapshot that cannot be read, and never the job's own fault, as codes of data and
  // commands are.
  absl::Status Reason(const absl::Status& status) const {
    if (status.ok()) return status;
    const bool gone = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
                      absl::IsCancelled(status) || absl::IsNotFound(status);
    return absl::Status(gone ? absl::StatusCode::kUnavailable : absl::StatusCode::kDataLoss,
                        absl::StrCat(range_.file, " of step ", range_.step, " at ", address_, ": ",
                                     status.ToString()));
  }

  SnapshotPeers* const peers_;
  const std::string address_;
  SnapshotRange range_;
  const int64_t size_;
};

SnapshotFiles::SnapshotFiles(const std::string& job, const SnapshotPlan& plan, Manifest manifest,
                             const SnapshotStore* store, SnapshotPeers* peers)
    : job_(job), plan_(plan), manifest_(std::move(manifest)), store_(store), peers_(peers) {}

absl::StatusOr<std::unique_ptr<SnapshotFiles>> SnapshotFiles::Make(const std::string& job,
                                                                   const SnapshotPlan& plan,
                                                                   const SnapshotStore* store,
                                                                   SnapshotPeers* peers) {
  ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(plan.manifest));
  return std::unique_ptr<SnapshotFiles>(
      new SnapshotFiles(job, plan, std::move(manifest), store, peers));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> SnapshotFiles::Open(const std::string& path) {
  const std::string name(absl::StripPrefix(path, "/"));
  if (name == kManifestFile) {
    return ReadableMemory(std::as_bytes(std::span(plan_.manifest)), path, nullptr);
  }
  const auto shard = std::find_if(manifest_.shards.begin(), manifest_.shards.end(),
                                  [&name](const ShardInfo& info) { return info.file == name; });
  const auto holder =
      std::find_if(plan_.holders.begin(), plan_.holders.end(),
                   [&name](const SnapshotPlan::Holder& one) { return one.file == name; });
  if (shard == manifest_.shards.end() || holder == plan_.holders.end()) {
    return absl::NotFoundError(absl::StrCat(path, ": not a file of this snapshot"));
  }
  const uint64_t step = manifest_.state.step;
  const auto here = store_->Find(job_, plan_.key, step, shard->file);
  if (here.has_value() && here->held.info.sha256 == shard->sha256) {
    return ReadableMemory(here->file, path, here->keeps);
  }
  if (peers_ == nullptr) return absl::NotFoundError(absl::StrCat(path, ": not held here"));
  return std::make_unique<RemoteFile>(
      peers_, holder->address,
      SnapshotRange{.job = job_, .key = plan_.key, .step = step, .file = shard->file},
      shard->bytes);
}

absl::Status SnapshotFiles::Look(const std::string& path) { return Open(path).status(); }

}  // namespace stagecoach
