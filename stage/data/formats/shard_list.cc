#include "stage/data/formats/shard_list.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/utf8.h"
#include "stage/data/formats/tar_members.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostLabelBytes = 64;
constexpr size_t kMostOpenShards = 256;  // the others are opened for each picture

// The name up to the first dot behind its folder, and what is behind that.
std::pair<std::string, std::string> KeyAndExtension(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), absl::AsciiStrToLower(name.substr(dot + 1))};
}

}  // namespace

// Members of one key.
struct ShardList::Sample {
  std::string key, where;  // the latter: file and offset
  int32_t shard = 0;
  std::optional<TarMember> picture;
  std::optional<std::string> label;
  bool twice = false;  // one of them is there again
};

absl::StatusOr<ShardList> ShardList::List(const DataRoots& roots, const std::string& field,
                                          const std::string& folder, int64_t classes,
                                          const OnBad& bad) {
  ShardList list;
  list.roots_ = &roots;
  list.field_ = field;
  list.folder_ = folder;
  const std::string where = list.Where();
  ASSIGN_OR_RETURN(const DataRoots::Opened opened, Annotate(roots.OpenFolder(folder), where));
  ASSIGN_OR_RETURN(const std::vector<DataRoots::Entry> entries,
                   Annotate(DataRoots::List(opened.descriptor), where));
  list.real_folder_ = opened.real;
  std::vector<std::string> names;
  for (const DataRoots::Entry& entry : entries) {
    const std::string lower = absl::AsciiStrToLower(entry.name);
    if (absl::StartsWith(lower, ".") || entry.kind == DataRoots::Entry::Kind::kFolder) {
      list.left_out_.Add(entry.name, "a folder");
    } else if (absl::EndsWith(lower, ".tar")) {
      names.push_back(entry.name);
    } else if (absl::StrContains(lower, ".tar.") || absl::EndsWith(lower, ".tgz")) {
      return absl::InvalidArgumentError(absl::StrCat(where, ", ", ShownName(entry.name),
                                                     ": a packed shard; unpack it to a .tar file"));
    } else {
      list.left_out_.Add(entry.name);
    }
  }
  if (names.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": has no .tar files",
                     list.left_out_.empty() ? "" : ", but " + list.left_out_.Text(),
                     "; give a folder with shards, unpacked from gzip or xz"));
  }
  for (const std::string& name : names) RETURN_IF_ERROR(list.AddShard(name, classes, bad));
  return list;
}

absl::StatusOr<std::shared_ptr<const OpenedFile>> ShardList::OpenShard(
    const std::string& name) const {
  return OpenedFile::OpenAs(*roots_, field_, (std::filesystem::path(folder_) / name).string(),
                            absl::StrCat(real_folder_, "/", name));
}

absl::Status ShardList::AddShard(const std::string& name, int64_t classes, const OnBad& bad) {
  const absl::StatusOr<std::shared_ptr<const OpenedFile>> opened = OpenShard(name);
  if (absl::IsInvalidArgument(opened.status())) return bad(opened.status());  // a link
  RETURN_IF_ERROR(opened.status());
  const std::shared_ptr<const OpenedFile>& file = *opened;
  if (!absl::StartsWith(file->real_path(), real_folder_ + "/")) {
    return bad(absl::InvalidArgumentError(
        absl::StrCat(file->Where(), ": a link out of the folder, to ", ShownName(file->real_path()),
                     "; put the file itself there")));
  }
  const auto shard = static_cast<int32_t>(shards_.size());
  shards_.push_back(name);
  shard_bytes_.push_back(file->size());
  if (opened_.size() < kMostOpenShards) opened_.push_back(file);
  TarMembers members(file.get());
  std::optional<Sample> sample;
  while (true) {
    TickProgress();
    const absl::StatusOr<std::optional<TarMember>> member = members.Next();
    if (!member.ok()) RETURN_IF_ERROR(bad(member.status()));
    const bool ended = !member.ok() || !member->has_value();
    auto [key, extension] =
        ended ? std::pair<std::string, std::string>() : KeyAndExtension((**member).name);
    if (sample.has_value() && (ended || sample->key != key)) {
      // Its other members may be what is cut off: that is one bad record and not two.
      const bool whole = sample->picture.has_value() && sample->label.has_value();
      if (member.ok() || whole) RETURN_IF_ERROR(AddSample(*sample, classes, bad));
      sample.reset();
    }
    if (ended) return absl::OkStatus();
    if (!sample.has_value()) {
      sample = {.key = key,
                .where = absl::StrCat(file->Where(), ", offset ", (**member).offset - 512, " (",
                                      ShownName(key), ")"),
                .shard = shard};
    }
    if (IsPictureName("." + extension)) {
      sample->twice = sample->twice || sample->picture.has_value();
      sample->picture = **member;
    }
    if (extension != "cls") continue;
    sample->twice = sample->twice || sample->label.has_value();
    std::string text(static_cast<size_t>(std::min((**member).bytes, kMostLabelBytes)), '\0');
    RETURN_IF_ERROR(file->ReadAt((**member).offset,
                                 std::span(reinterpret_cast<uint8_t*>(text.data()), text.size())));
    sample->label = std::move(text);
  }
}

absl::Status ShardList::AddSample(const Sample& sample, int64_t classes, const OnBad& bad) {
  const auto refused = [&](const std::string& why) {
    return bad(absl::InvalidArgumentError(absl::StrCat(sample.where, ": ", why)));
  };
  if (!sample.picture.has_value() && !sample.label.has_value()) return absl::OkStatus();
  if (sample.twice) return refused("has two pictures or two .cls; give one of each");
  if (!sample.picture.has_value())
    return refused("has .cls and no picture (.jpg, .png, .tif, .webp)");
  if (!sample.label.has_value()) return refused("has a picture and no .cls, its class");
  int64_t label = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(*sample.label), &label)) {
    return refused("its .cls is no decimal number");
  }
  if (label < 0 || label >= classes) {
    return refused(
        absl::StrCat("label ", label, " is not below the ", classes, " classes of the network"));
  }
  if (sample.picture->bytes > kMostPictureBytes) {
    return refused(absl::StrCat("a picture of ", sample.picture->bytes, " bytes; at most ",
                                kMostPictureBytes, " are read"));
  }
  records_.push_back({.shard = sample.shard,
                      .label = static_cast<int32_t>(label),
                      .offset = sample.picture->offset,
                      .bytes = sample.picture->bytes});
  return absl::OkStatus();
}

std::string ShardList::Where() const { return absl::StrCat(field_, " = \"", folder_, "\""); }

std::string ShardList::Where(int64_t i) const {
  const Record& record = records_[static_cast<size_t>(i)];
  return absl::StrCat(
      field_, " = \"",
      (std::filesystem::path(folder_) / shards_[static_cast<size_t>(record.shard)]).string(),
      "\", offset ", record.offset);
}

absl::StatusOr<std::vector<uint8_t>> ShardList::Read(int64_t i, int64_t most) const {
  const Record& record = records_[static_cast<size_t>(i)];
  const auto shard = static_cast<size_t>(record.shard);
  std::shared_ptr<const OpenedFile> file;
  if (shard < opened_.size()) {
    file = opened_[shard];
  } else {
    ASSIGN_OR_RETURN(file, OpenShard(shards_[shard]));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(record.bytes, most)));
  RETURN_IF_ERROR(file->ReadAt(record.offset, bytes));
  return bytes;
}

void ShardList::Sum(Sha256* digest, int64_t* bytes) const {
  for (size_t i = 0; i < shards_.size(); ++i) {
    digest->Update(absl::StrCat(shards_[i], std::string(1, '\0'), shard_bytes_[i], "\n"));
    *bytes += shard_bytes_[i];
  }
  for (const Record& record : records_) {
    digest->Update(
        absl::StrCat(record.shard, " ", record.offset, " ", record.bytes, " ", record.label, "\n"));
  }
}

}  // namespace stagecoach
