#include "coordinator/testing/memory_disk.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/errors/check.h"

namespace stagecoach {

void MemoryDisk::Node::Remember(int64_t offset, int64_t length, std::string after) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  Change change{offset, size, {}, std::move(after)};
  if (offset < size) {
    change.before = bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(length));
  }
  changes.push_back(std::move(change));
}

void MemoryDisk::Node::Put(int64_t offset, const std::string& what) {
  const size_t end = static_cast<size_t>(offset) + what.size();
  if (bytes.size() < end) bytes.resize(end);
  std::memcpy(bytes.data() + offset, what.data(), what.size());
}

sqlite3_io_methods MemoryDisk::MakeMethods() {
  sqlite3_io_methods methods = {};
  methods.iVersion = 2;  // with the log's index
  methods.xClose = Close;
  methods.xRead = Read;
  methods.xWrite = Write;
  methods.xTruncate = Truncate;
  methods.xSync = Sync;
  methods.xFileSize = Size;
  methods.xLock = Lock;
  methods.xUnlock = [](sqlite3_file*, int) { return SQLITE_OK; };
  methods.xCheckReservedLock = [](sqlite3_file*, int* result) { return *result = 0, SQLITE_OK; };
  methods.xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; };
  methods.xSectorSize = [](sqlite3_file*) { return 4096; };
  methods.xDeviceCharacteristics = [](sqlite3_file*) {
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;  // as on every Unix
  };
  methods.xShmMap = MapIndex;
  methods.xShmLock = [](sqlite3_file*, int, int, int) { return SQLITE_OK; };
  methods.xShmBarrier = [](sqlite3_file*) {};
  methods.xShmUnmap = UnmapIndex;
  return methods;
}

MemoryDisk::MemoryDisk() : vfs_(*sqlite3_vfs_find(nullptr)) {
  CHECK(active_ == nullptr) << "one disk at a time";
  active_ = this;
  vfs_.zName = "memory";
  vfs_.szOsFile = sizeof(File);
  vfs_.pNext = nullptr;
  vfs_.xOpen = Open;
  vfs_.xDelete = Delete;
  vfs_.xAccess = Access;
  vfs_.xFullPathname = FullPath;
  CHECK(sqlite3_vfs_register(&vfs_, 1) == SQLITE_OK) << "the disk is taken for the default one";
}

MemoryDisk::~MemoryDisk() {
  sqlite3_vfs_unregister(&vfs_);
  active_ = nullptr;
}

void MemoryDisk::CutPower(Unsynced unsynced) {
  std::mt19937_64 random(static_cast<uint64_t>(calls_));
  for (auto& [path, node] : nodes_) {
    for (auto change = node->changes.rbegin(); change != node->changes.rend(); ++change) {
      node->bytes.resize(static_cast<size_t>(change->size_before));
      if (!change->before.empty()) node->Put(change->offset, change->before);
    }
    for (const Change& change : node->changes) {
      if (unsynced == Unsynced::kGone || random() % 2 == 0) continue;
      if (change.after.empty()) {
        node->bytes.resize(static_cast<size_t>(change.offset));
      } else {
        node->Put(change.offset, change.after);
      }
    }
    node->changes.clear();
  }
}

void MemoryDisk::Inject(int64_t call, State state, bool torn) {
  fault_call_ = call;
  fault_ = state;
  torn_ = torn;
}

bool MemoryDisk::FailsNow() {
  const bool struck = ++calls_ == fault_call_;
  if (struck) state_ = fault_;
  return Broken() || (struck && fault_ == State::kGood);
}

MemoryDisk::Copy MemoryDisk::Files() const {
  Copy copy;
  for (const auto& [path, node] : nodes_) copy[path] = node->bytes;
  return copy;
}

void MemoryDisk::Restore(const Copy& copy) {
  nodes_.clear();
  Add(copy);
}

void MemoryDisk::Add(const Copy& copy) {
  for (const auto& [path, bytes] : copy) {
    nodes_[path] = std::make_unique<Node>();
    nodes_[path]->bytes = bytes;
  }
}

int MemoryDisk::Open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags,
                     int* out_flags) {
  static const sqlite3_io_methods methods = MakeMethods();
  File& opened = *reinterpret_cast<File*>(file);
  file->pMethods = nullptr;
  opened.is_temporary = path == nullptr;
  if (opened.is_temporary) {
    opened.node = new Node;
  } else {
    std::unique_ptr<Node>& node = active_->nodes_[path];
    if (node == nullptr && (flags & SQLITE_OPEN_CREATE) == 0) {
      active_->nodes_.erase(path);
      return SQLITE_CANTOPEN;
    }
    if (node == nullptr && (active_->Broken() || active_->state_ == State::kFull)) {
      const bool full = active_->state_ == State::kFull;
      active_->nodes_.erase(path);
      return full ? SQLITE_FULL : SQLITE_CANTOPEN;
    }
    if (node == nullptr) node = std::make_unique<Node>();
    opened.node = node.get();
  }
  ++opened.node->connections;
  file->pMethods = &methods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int MemoryDisk::Delete(sqlite3_vfs*, const char* path, int) {
  if (active_->FailsNow()) return SQLITE_IOERR;
  return active_->nodes_.erase(path) > 0 ? SQLITE_OK : SQLITE_IOERR_DELETE_NOENT;
}

int MemoryDisk::Access(sqlite3_vfs*, const char* path, int, int* result) {
  *result = active_->nodes_.contains(path) ? 1 : 0;
  return SQLITE_OK;
}

int MemoryDisk::FullPath(sqlite3_vfs*, const char* path, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", path);
  return SQLITE_OK;
}

int MemoryDisk::Close(sqlite3_file* file) {
  File& opened = *reinterpret_cast<File*>(file);
  --opened.node->connections;
  if (opened.is_temporary) delete opened.node;
  return SQLITE_OK;
}

int MemoryDisk::Read(sqlite3_file* file, void* bytes, int amount, sqlite3_int64 offset) {
  const std::string& content = Of(file).bytes;
  const int64_t there =
      std::clamp<int64_t>(static_cast<int64_t>(content.size()) - offset, 0, amount);
  if (there > 0) std::memcpy(bytes, content.data() + offset, static_cast<size_t>(there));
  if (there == amount) return SQLITE_OK;
  std::memset(static_cast<char*>(bytes) + there, 0, static_cast<size_t>(amount - there));
  return SQLITE_IOERR_SHORT_READ;
}

int MemoryDisk::Write(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
  std::string written(static_cast<const char*>(bytes), static_cast<size_t>(amount));
  Node& node = Of(file);
  const bool ended = active_->state_ == State::kFrozen, fails = active_->FailsNow();
  if (fails) {
    const bool half = active_->torn_ && !ended && active_->state_ == State::kFrozen;
    if (half) node.Put(offset, written.substr(0, written.size() / 2));
    return SQLITE_IOERR_WRITE;
  }
  if (active_->state_ == State::kFull) return SQLITE_FULL;
  node.Remember(offset, amount, written);
  node.Put(offset, written);
  return SQLITE_OK;
}

int MemoryDisk::Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (active_->FailsNow()) return SQLITE_IOERR_TRUNCATE;
  Node& node = Of(file);
  if (static_cast<int64_t>(node.bytes.size()) <= size) return SQLITE_OK;
  node.Remember(size, static_cast<int64_t>(node.bytes.size()) - size, "");
  node.bytes.resize(static_cast<size_t>(size));
  return SQLITE_OK;
}

int MemoryDisk::Sync(sqlite3_file* file, int) {
  if (active_->FailsNow()) return SQLITE_IOERR_FSYNC;
  ++active_->syncs_;
  active_->on_sync();
  if (active_->state_ == State::kForgets) return SQLITE_OK;
  Of(file).changes.clear();
  return SQLITE_OK;
}

int MemoryDisk::Size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(Of(file).bytes.size());
  return SQLITE_OK;
}

int MemoryDisk::MapIndex(sqlite3_file* file, int page, int page_size, int extend,
                         void volatile** at) {
  auto& index = Of(file).index;
  while (extend != 0 && static_cast<int>(index.size()) <= page) {
    index.push_back(std::make_unique<std::string>(static_cast<size_t>(page_size), '\0'));
  }
  *at = page < static_cast<int>(index.size()) ? index[static_cast<size_t>(page)]->data() : nullptr;
  return SQLITE_OK;
}

int MemoryDisk::Lock(sqlite3_file* file, int level) {
  const bool others = Of(file).connections > 1;
  return others && level == SQLITE_LOCK_EXCLUSIVE ? SQLITE_BUSY : SQLITE_OK;
}

int MemoryDisk::UnmapIndex(sqlite3_file* file, int) {
  if (Of(file).connections == 1) Of(file).index.clear();
  return SQLITE_OK;
}

}  // namespace stagecoach
