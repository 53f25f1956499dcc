#include "services/stage/stage_identity.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "services/common/process/process.h"

namespace stagecoach {
namespace {

constexpr size_t kIdCharacters = 32;
constexpr size_t kTextCharacters = 32;

std::string NewId() { return NewIncarnation() + NewIncarnation(); }

absl::Status FolderError(const std::string& path, const std::string& reason) {
  return absl::FailedPreconditionError(
      absl::StrCat("--state-dir: ", path, ": ", reason, "; give a folder that can be written"));
}

// The id in the file, or a new one if there is none or only a part of one.
absl::StatusOr<std::string> ReadOrWriteId(int descriptor, const std::string& path) {
  std::string id(kIdCharacters, '\0');
  const ssize_t got = pread(descriptor, id.data(), id.size(), 0);
  const auto is_hexadecimal = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  };
  if (got == static_cast<ssize_t>(id.size()) && std::all_of(id.begin(), id.end(), is_hexadecimal)) {
    return id;
  }
  id = NewId();
  const std::string line = id + "\n";
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, line.data(), line.size(), 0) != static_cast<ssize_t>(line.size()) ||
      fsync(descriptor) != 0) {
    return FolderError(path, strerror(errno));
  }
  return id;
}

}  // namespace

Machine ThisMachine() {
  Machine machine;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> machine.boot;
  std::error_code error;
  machine.network = std::filesystem::read_symlink("/proc/self/ns/net", error).string();
  return machine;
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

StageIdentity::StageIdentity(const std::string& source, int descriptor)
    : text_(Sha256Hex(source).substr(0, kTextCharacters)), descriptor_(descriptor) {}

StageIdentity::~StageIdentity() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<std::unique_ptr<StageIdentity>> StageIdentity::Make(const std::string& state_folder,
                                                                   const Machine& machine,
                                                                   const std::string& listen) {
  const auto make = [](const std::string& source, int descriptor) {
    return std::unique_ptr<StageIdentity>(new StageIdentity(source, descriptor));
  };
  if (state_folder.empty()) {
    const bool place = !machine.boot.empty() && !machine.network.empty() && !listen.empty();
    if (!place) return make(NewId(), -1);
    return make(absl::StrCat("place ", machine.boot, " ", machine.network, " ", listen), -1);
  }
  std::error_code error;
  std::filesystem::create_directories(state_folder, error);
  if (error) return FolderError(state_folder, error.message());
  const std::string path = absl::StrCat(state_folder, "/identity");
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return FolderError(path, strerror(errno));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const std::string reason = strerror(errno);
    close(descriptor);
    spdlog::warn("{} is held by another process ({}): this one is another stage", path, reason);
    return make(NewId(), -1);
  }
  const absl::StatusOr<std::string> id = ReadOrWriteId(descriptor, path);
  if (!id.ok()) {
    close(descriptor);
    return id.status();
  }
  return make(absl::StrCat("folder ", machine.boot, " ", *id), descriptor);
}

}  // namespace stagecoach
