#include "checkpoint/testing/fault_file_system.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

constexpr auto kLongestHold = std::chrono::minutes(1);

}  // namespace

struct FaultFileSystem::Node {
  using Entries = std::map<std::string, std::shared_ptr<Node>>;

  bool folder = false;
  std::string bytes, synced_bytes;  // of a file
  Entries entries, synced_entries;  // of a folder

  // A file with two names counts once.
  int64_t Used(std::set<const Node*>* seen) const {
    if (!seen->insert(this).second) return 0;
    int64_t used = static_cast<int64_t>(bytes.size());
    for (const auto& [name, node] : entries) used += node->Used(seen);
    return used;
  }

  bool IsLeaf() const {
    const auto is_file = [](const auto& entry) { return !entry.second->folder; };
    return std::all_of(entries.begin(), entries.end(), is_file) &&
           std::all_of(synced_entries.begin(), synced_entries.end(), is_file);
  }

  // Everything below goes too, as a recursive removal does it; its folder forgets this node later.
  void Empty() {
    for (const auto& [name, node] : entries) node->Empty();
    entries.clear();
  }

  void CutPower(Survivors survivors) {
    const bool keep_entries =
        survivors == Survivors::kEntries || (survivors == Survivors::kLeaves && IsLeaf());
    if (survivors != Survivors::kContents) bytes = synced_bytes;
    if (!keep_entries) entries = synced_entries;
    synced_bytes = bytes;
    synced_entries = entries;
    for (const auto& [name, node] : entries) node->CutPower(survivors);
  }
};

namespace {

absl::Status Missing(const char* operation, const std::string& path) {
  return absl::NotFoundError(absl::StrCat(operation, " ", path, ": no such file or folder"));
}

std::vector<std::string> Components(const std::string& path) {
  std::vector<std::string> components = absl::StrSplit(path, '/', absl::SkipEmpty());
  for (const std::string& component : components) {
    CHECK(component != "..") << "path " << path << " climbs";
  }
  return components;
}

}  // namespace

class FaultFileSystem::Writer final : public WritableFile {
 public:
  Writer(FaultFileSystem* files, std::shared_ptr<Node> node, std::string path)
      : files_(files),
        node_(std::move(node)),
        path_(std::move(path)),
        power_cuts_(files->power_cuts_) {}

  absl::Status Append(std::span<const std::byte> bytes) override {
    std::unique_lock<std::mutex> lock(files_->mutex_);
    files_->WaitToWrite(&lock);
    RETURN_IF_ERROR(UsableLocked());
    const Verdict verdict = files_->JudgeLocked("write", path_);
    size_t length = bytes.size();
    if (!verdict.act) length /= 2;  // a torn write
    const int64_t room = std::max<int64_t>(files_->capacity_ - files_->UsedLocked(), 0);
    const bool full = static_cast<int64_t>(length) > room;
    if (full) length = static_cast<size_t>(room);
    node_->bytes.append(reinterpret_cast<const char*>(bytes.data()), length);
    if (!verdict.answer.ok()) return Poison(verdict.answer);
    if (full) return Poison(absl::ResourceExhaustedError(absl::StrCat("write ", path_, ": full")));
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    std::lock_guard<std::mutex> lock(files_->mutex_);
    RETURN_IF_ERROR(UsableLocked());
    const Verdict verdict = files_->JudgeLocked("fsync", path_);
    if (verdict.act) node_->synced_bytes = node_->bytes;
    if (!verdict.answer.ok()) return Poison(verdict.answer);
    return absl::OkStatus();
  }

  absl::Status Close() override {
    std::lock_guard<std::mutex> lock(files_->mutex_);
    RETURN_IF_ERROR(UsableLocked());
    const Verdict verdict = files_->JudgeLocked("close", path_);
    status_ = absl::FailedPreconditionError(absl::StrCat("file ", path_, " is closed"));
    if (!verdict.answer.ok()) return Poison(verdict.answer);
    return absl::OkStatus();
  }

 private:
  absl::Status UsableLocked() {
    if (power_cuts_ != files_->power_cuts_) {
      return absl::UnavailableError(
          absl::StrCat("file ", path_, " was open when the power failed"));
    }
    return status_;
  }
  absl::Status Poison(const absl::Status& status) {
    status_ = status;
    return status;
  }

  FaultFileSystem* const files_;
  const std::shared_ptr<Node> node_;
  const std::string path_;
  const int64_t power_cuts_;
  absl::Status status_;
};

class FaultFileSystem::Reader final : public ReadableFile {
 public:
  Reader(FaultFileSystem* files, std::shared_ptr<Node> node, std::string path)
      : files_(files),
        node_(std::move(node)),
        path_(std::move(path)),
        size_(static_cast<int64_t>(node_->bytes.size())) {}

  int64_t size() const override { return size_; }

  absl::Status Read(int64_t offset, std::span<std::byte> target) override {
    std::lock_guard<std::mutex> lock(files_->mutex_);
    const Verdict verdict = files_->JudgeLocked("read", path_);
    if (!verdict.answer.ok()) return verdict.answer;
    const int64_t size = static_cast<int64_t>(node_->bytes.size());
    const int64_t length = static_cast<int64_t>(target.size());
    if (offset < 0 || offset > size || length > size - offset) {
      return absl::DataLossError(absl::StrCat("read ", path_, ": ", length, " bytes at offset ",
                                              offset, " are not within its ", size, " bytes"));
    }
    if (length > 0) std::memcpy(target.data(), node_->bytes.data() + offset, target.size());
    return absl::OkStatus();
  }

 private:
  FaultFileSystem* const files_;
  const std::shared_ptr<Node> node_;
  const std::string path_;
  const int64_t size_;
};

FaultFileSystem::FaultFileSystem() : root_(std::make_shared<Node>()) { root_->folder = true; }
FaultFileSystem::~FaultFileSystem() = default;

void FaultFileSystem::Inject(const Fault& fault) {
  std::lock_guard<std::mutex> lock(mutex_);
  fault_ = fault;
  calls_since_fault_ = 0;
}

void FaultFileSystem::ClearFault() {
  std::lock_guard<std::mutex> lock(mutex_);
  fault_.reset();
}

int64_t FaultFileSystem::calls() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return calls_;
}

void FaultFileSystem::HoldWrites() {
  std::lock_guard<std::mutex> lock(mutex_);
  holds_writes_ = true;
}

void FaultFileSystem::LetWritesGo() {
  std::lock_guard<std::mutex> lock(mutex_);
  holds_writes_ = false;
  writes_changed_.notify_all();
}

void FaultFileSystem::AwaitHeldWrite() {
  std::unique_lock<std::mutex> lock(mutex_);
  CHECK(writes_changed_.wait_for(lock, kLongestHold, [this] { return held_writes_ > 0; }))
      << "nobody has written within a minute";
}

void FaultFileSystem::WaitToWrite(std::unique_lock<std::mutex>* lock) {
  if (!holds_writes_) return;
  ++held_writes_;
  writes_changed_.notify_all();
  CHECK(writes_changed_.wait_for(*lock, kLongestHold, [this] { return !holds_writes_; }))
      << "writes were held for a minute";
  --held_writes_;
}

void FaultFileSystem::SetCapacity(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  capacity_ = bytes;
}

void FaultFileSystem::CutPower(Survivors survivors) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++power_cuts_;
  root_->CutPower(survivors);
}

std::string FaultFileSystem::Contents(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Node> node = FindLocked(path);
  CHECK(node != nullptr && !node->folder) << path << " is no file";
  return node->bytes;
}

void FaultFileSystem::SetContents(const std::string& path, const std::string& bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Node> node = FindLocked(path);
  CHECK(node != nullptr && !node->folder) << path << " is no file";
  node->bytes = node->synced_bytes = bytes;
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::Create(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Verdict verdict = JudgeLocked("create", path);
  if (!verdict.act) return verdict.answer;
  absl::StatusOr<std::shared_ptr<Node>> parent = ParentLocked(path);
  if (!parent.ok()) return parent.status();
  std::shared_ptr<Node>& entry = (*parent)->entries[NameOf(path)];
  if (entry != nullptr) return absl::AlreadyExistsError(absl::StrCat("create ", path, ": exists"));
  entry = std::make_shared<Node>();
  if (!verdict.answer.ok()) return verdict.answer;
  return std::make_unique<Writer>(this, entry, path);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FaultFileSystem::Open(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Verdict verdict = JudgeLocked("open", path);
  if (!verdict.answer.ok()) return verdict.answer;
  std::shared_ptr<Node> node = FindLocked(path);
  if (node == nullptr) return Missing("open", path);
  if (node->folder) return absl::DataLossError(absl::StrCat("open ", path, ": a folder"));
  return std::make_unique<Reader>(this, std::move(node), path);
}

absl::Status FaultFileSystem::MakeFolders(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Verdict verdict = JudgeLocked("make folder", path);
  if (!verdict.act) return verdict.answer;
  const absl::Status made = MakeFoldersLocked(path);
  return verdict.answer.ok() ? made : verdict.answer;
}

absl::Status FaultFileSystem::MakeFoldersLocked(const std::string& path) {
  std::shared_ptr<Node> node = root_;
  for (const std::string& name : Components(path)) {
    std::shared_ptr<Node>& entry = node->entries[name];
    if (entry == nullptr) {
      entry = std::make_shared<Node>();
      entry->folder = true;
    }
    if (!entry->folder) return absl::AlreadyExistsError(absl::StrCat(path, ": a file is there"));
    node = entry;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FaultFileSystem::List(const std::string& folder) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Verdict verdict = JudgeLocked("list", folder);
  if (!verdict.answer.ok()) return verdict.answer;
  const std::shared_ptr<Node> node = FindLocked(folder);
  if (node == nullptr || !node->folder) return Missing("list", folder);
  std::vector<std::string> names;
  for (const auto& [name, child] : node->entries) names.push_back(name);
  return names;
}

absl::Status FaultFileSystem::Rename(const std::string& from, const std::string& to) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Verdict verdict = JudgeLocked("rename", from);
  if (!verdict.act) return verdict.answer;
  const absl::Status renamed = RenameLocked(from, to);
  return verdict.answer.ok() ? renamed : verdict.answer;
}

absl::Status FaultFileSystem::RenameLocked(const std::string& from, const std::string& to) {
  const std::shared_ptr<Node> node = FindLocked(from);
  if (node == nullptr) return Missing("rename", from);
  absl::StatusOr<std::shared_ptr<Node>> parent = ParentLocked(to);
  if (!parent.ok()) return parent.status();
  const std::shared_ptr<Node> replaced = FindLocked(to);
  if (replaced != nullptr &&
      (replaced->folder != node->folder || (replaced->folder && !replaced->entries.empty()))) {
    return absl::AlreadyExistsError(absl::StrCat("rename ", from, " to ", to, ": exists"));
  }
  absl::StatusOr<std::shared_ptr<Node>> old_parent = ParentLocked(from);
  CHECK(old_parent.ok()) << "a node was found, so its folder is there";
  (*old_parent)->entries.erase(NameOf(from));
  (*parent)->entries[NameOf(to)] = node;
  return absl::OkStatus();
}

absl::Status FaultFileSystem::Link(const std::string& from, const std::string& to) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Verdict verdict = JudgeLocked("link", from);
  if (!verdict.act) return verdict.answer;
  const absl::Status linked = LinkLocked(from, to);
  return verdict.answer.ok() ? linked : verdict.answer;
}

absl::Status FaultFileSystem::LinkLocked(const std::string& from, const std::string& to) {
  const std::shared_ptr<Node> node = FindLocked(from);
  if (node == nullptr || node->folder) return Missing("link", from);
  absl::StatusOr<std::shared_ptr<Node>> parent = ParentLocked(to);
  if (!parent.ok()) return parent.status();
  if (!(*parent)->entries.emplace(NameOf(to), node).second) {
    return absl::AlreadyExistsError(absl::StrCat("link ", from, " to ", to, ": exists"));
  }
  return absl::OkStatus();
}

absl::Status FaultFileSystem::SyncFolder(const std::string& folder) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Verdict verdict = JudgeLocked("fsync folder", folder);
  if (!verdict.act) return verdict.answer;
  const std::shared_ptr<Node> node = FindLocked(folder);
  if (node == nullptr || !node->folder) return Missing("fsync folder", folder);
  node->synced_entries = node->entries;
  return verdict.answer;
}

absl::Status FaultFileSystem::RemoveAll(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Verdict verdict = JudgeLocked("remove", path);
  if (!verdict.act) {
    const std::shared_ptr<Node> node = FindLocked(path);
    if (node != nullptr && !node->entries.empty()) node->entries.erase(node->entries.begin());
    return verdict.answer;
  }
  absl::StatusOr<std::shared_ptr<Node>> parent = ParentLocked(path);
  if (const std::shared_ptr<Node> node = FindLocked(path)) node->Empty();
  if (parent.ok()) (*parent)->entries.erase(NameOf(path));
  return verdict.answer;
}

absl::Status FaultFileSystem::Look(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  return FindLocked(path) != nullptr ? absl::OkStatus() : Missing("look at", path);
}

absl::StatusOr<int64_t> FaultFileSystem::FreeBytes(const std::string& folder) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Verdict verdict = JudgeLocked("free bytes of", folder);
  if (!verdict.answer.ok()) return verdict.answer;
  if (FindLocked(folder) == nullptr) return Missing("free bytes of", folder);
  return std::max<int64_t>(capacity_ - UsedLocked(), 0);
}

FaultFileSystem::Verdict FaultFileSystem::JudgeLocked(const char* operation,
                                                      const std::string& path) {
  ++calls_;
  ++calls_since_fault_;
  if (!fault_) return {};
  const bool strikes = calls_since_fault_ == fault_->call ||
                       (fault_->from_then_on && calls_since_fault_ > fault_->call);
  if (!strikes) return {};
  const std::string_view name = operation;
  const bool reads = name == "open" || name == "list" || name == "read";
  const bool may_come_back =
      fault_->as_posix && reads && fault_->code == absl::StatusCode::kDataLoss;
  const absl::StatusCode code = may_come_back ? absl::StatusCode::kUnavailable : fault_->code;
  // Only the first call of a dying process can have done its work.
  return {.act = fault_->after_effect && calls_since_fault_ == fault_->call,
          .answer = absl::Status(code, absl::StrCat("injected: ", operation, " ", path))};
}

std::shared_ptr<FaultFileSystem::Node> FaultFileSystem::FindLocked(const std::string& path) const {
  std::shared_ptr<Node> node = root_;
  for (const std::string& name : Components(path)) {
    const auto at = node->entries.find(name);
    if (at == node->entries.end()) return nullptr;
    node = at->second;
  }
  return node;
}

absl::StatusOr<std::shared_ptr<FaultFileSystem::Node>> FaultFileSystem::ParentLocked(
    const std::string& path) const {
  const std::string folder = FolderOf(path);
  std::shared_ptr<Node> node = folder == "." ? root_ : FindLocked(folder);
  if (node == nullptr || !node->folder) return Missing("look up", folder);
  return node;
}

int64_t FaultFileSystem::UsedLocked() const {
  std::set<const Node*> seen;
  return root_->Used(&seen);
}

}  // namespace stagecoach
