#include "stage/data/formats/shard_list.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "base/utf8.h"
#include "stage/data/formats/tar_members.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

constexpr size_t kMostLabelBytes = 64;
constexpr size_t kMostOpenShards = 256;  // the others are opened for each picture

// "mask.png" is none, though it ends like one.
bool IsPictureExtension(const std::string& extension) {
  return extension.find('.') == std::string::npos && IsPictureName("." + extension);
}

// A member's name as WebDataset takes it apart (its base_plus_ext): behind its folder, the sample's
// key goes up to the first dot, and all that is behind that dot is the extension.
struct MemberName {
  std::string key, extension;  // the latter in lower case
  // "image.png" of "a.image.png": neither a picture nor a class, though it ends like one.
  bool dotted = false;
};

// "__meta__", and what lies in such a folder: WebDataset keeps it for itself.
bool IsMeta(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

// "a/" of "a/.png" is a key, where the folder's name has no dot: WebDataset takes it for one.
bool IsKeyOfFolder(std::string_view key) {
  if (key.empty()) return false;
  return key.substr(key.substr(0, key.size() - 1).rfind('/') + 1).find('.') == key.npos;
}

// nullopt: no sample's. A name that begins with a dot, as macOS's "._1.png", or has none, and
// WebDataset's "__meta__".
std::optional<MemberName> NameOfMember(const std::string& name) {
  const size_t base = name.rfind('/') + 1;  // 0 where there is none
  const size_t dot = name.find('.', base);
  if (dot == std::string::npos || IsMeta(name)) return std::nullopt;
  MemberName taken{.key = name.substr(0, dot),
                   .extension = absl::AsciiStrToLower(name.substr(dot + 1))};
  if (dot == base) {
    const bool whole = IsPictureExtension(taken.extension) || taken.extension == "cls";
    return whole && IsKeyOfFolder(taken.key) ? std::optional(taken) : std::nullopt;
  }
  const size_t last = taken.extension.rfind('.');
  if (last != std::string::npos) {
    const std::string end = taken.extension.substr(last + 1);
    taken.dotted = IsPictureExtension(end) || end == "cls";
  }
  return taken;
}

}  // namespace

// Members of one key.
struct ShardList::Sample {
  std::string key, where;  // the latter: file and offset
  int32_t shard = 0;
  std::optional<TarMember> picture;
  std::optional<std::string> label;
  std::string dotted;  // the name of a member with several dots
  std::string link;    // the name of a picture or .cls that is a link
  bool twice = false;  // one of them is there again

  // Why a member of it does not count, and what to do.
  std::string Rule() const {
    if (!link.empty()) {
      return absl::StrCat(
          "; ", ShownName(link),
          " is a link: pack the file itself (tar --dereference --hard-dereference)");
    }
    if (dotted.empty()) return "";
    return absl::StrCat("; by WebDataset's rule a name ends at its first dot, so ",
                        ShownName(dotted), " has none: take the other dots away");
  }
  bool whole() const { return picture.has_value() && label.has_value(); }
  bool empty() const {
    return !picture.has_value() && !label.has_value() && dotted.empty() && link.empty();
  }
  void Add(Sample&& other) {
    twice = twice || other.twice || (picture.has_value() && other.picture.has_value()) ||
            (label.has_value() && other.label.has_value());
    if (other.picture.has_value()) picture = std::move(other.picture);
    if (other.label.has_value()) label = std::move(other.label);
    if (dotted.empty()) dotted = std::move(other.dotted);
    if (link.empty()) link = std::move(other.link);
  }
};

// Of a shard, those that lack a member so far, in their order: it may stand further behind. And
// which ones lacked none: what else stands further behind of their keys is left out, as it is where
// it stands beside them.
class ShardList::Unfinished {
 public:
  // The sample with what was kept of its key; nullopt: kept, or nothing that counts.
  std::optional<Sample> Complete(Sample sample) {
    const auto found = places_.find(sample.key);
    if (found != places_.end()) {
      Sample& kept = samples_[found->second];
      kept.Add(std::move(sample));
      if (!kept.whole()) return std::nullopt;
      Sample whole = std::exchange(kept, Sample());
      places_.erase(found);
      whole_.insert(whole.key);
      return whole;
    }
    if (sample.whole() || sample.twice) {
      whole_.insert(sample.key);
      return sample;
    }
    if (sample.empty()) return std::nullopt;
    if (!sample.picture.has_value() && !sample.label.has_value() && whole_.contains(sample.key)) {
      return std::nullopt;
    }
    places_[sample.key] = samples_.size();
    samples_.push_back(std::move(sample));
    return std::nullopt;
  }
  // It has what was lacking of its key.
  bool Completes(const Sample& sample) const {
    const auto found = places_.find(sample.key);
    if (found == places_.end()) return false;
    const Sample& kept = samples_[found->second];
    return (sample.picture.has_value() || kept.picture.has_value()) &&
           (sample.label.has_value() || kept.label.has_value());
  }
  // Those that were not completed are not empty.
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  std::vector<Sample> samples_;
  std::unordered_map<std::string, size_t> places_;
  std::unordered_set<std::string> whole_;
};

absl::StatusOr<ShardList> ShardList::List(const DataRoots& roots, const std::string& field,
                                          const std::string& folder, int64_t classes,
                                          const OnBad& bad) {
  ShardList list;
  list.roots_ = &roots;
  list.field_ = field;
  list.folder_ = folder;
  const std::string where = list.Where();
  ASSIGN_OR_RETURN(const DataRoots::Folder listed, Annotate(roots.ListFolder(folder), where));
  list.real_folder_ = listed.real;
  std::vector<std::string> names;
  for (const DataRoots::Entry& entry : listed.entries) {
    const std::string lower = absl::AsciiStrToLower(entry.name);
    if (absl::StartsWith(lower, ".") || entry.kind == DataRoots::Entry::Kind::kFolder) {
      list.left_out_.Add(entry.name, "a folder");
    } else if (absl::EndsWith(lower, ".tar")) {
      names.push_back(entry.name);
    } else if (absl::EndsWith(lower, ".tar.part") || absl::EndsWith(lower, ".tar.bak") ||
               absl::EndsWith(lower, ".tar.crdownload") || absl::EndsWith(lower, ".tar.tmp")) {
      list.left_out_.Add(entry.name, "an unfinished or an older copy");
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
  return AddMembers(*file, shard, classes, bad);
}

absl::Status ShardList::AddMember(const OpenedFile& file, const TarMember& member,
                                  const std::string& extension, Sample* sample) {
  if (member.link) {
    if (IsPictureExtension(extension) || extension == "cls") sample->link = member.name;
    return absl::OkStatus();
  }
  if (IsPictureExtension(extension)) {
    sample->twice = sample->twice || sample->picture.has_value();
    sample->picture = member;
  }
  if (extension != "cls") return absl::OkStatus();
  sample->twice = sample->twice || sample->label.has_value();
  // One more, in which a longer one shows.
  const auto most = static_cast<int64_t>(kMostLabelBytes) + 1;
  std::string text(static_cast<size_t>(std::min(member.bytes, most)), '\0');
  RETURN_IF_ERROR(
      file.ReadAt(member.offset, std::span(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  sample->label = std::move(text);
  return absl::OkStatus();
}

absl::Status ShardList::AddMembers(const OpenedFile& file, int32_t shard, int64_t classes,
                                   const OnBad& bad) {
  TarMembers members(&file);
  Unfinished unfinished;
  std::optional<Sample> sample;
  const auto finish = [&]() -> absl::Status {
    if (!sample.has_value()) return absl::OkStatus();
    const std::optional<Sample> whole = unfinished.Complete(*std::exchange(sample, std::nullopt));
    return whole.has_value() ? AddSample(*whole, classes, bad) : absl::OkStatus();
  };
  while (true) {
    TickProgress();
    const absl::StatusOr<std::optional<TarMember>> member = members.Next();
    if (!member.ok()) {
      // What the last sample lacks may be what is cut off: that is one bad record and not two.
      if (sample.has_value() && !sample->whole() && !unfinished.Completes(*sample)) sample.reset();
      RETURN_IF_ERROR(bad(member.status()));
      RETURN_IF_ERROR(finish());
    }
    if (!member.ok() || !member->has_value()) break;
    const std::optional<MemberName> name = NameOfMember((**member).name);
    if (!name.has_value()) continue;
    if (sample.has_value() && sample->key != name->key) RETURN_IF_ERROR(finish());
    if (!sample.has_value()) {
      sample = {.key = name->key,
                .where = absl::StrCat(file.Where(), ", offset ", (**member).offset - 512, " (",
                                      ShownName(name->key), ")"),
                .shard = shard};
    }
    if (name->dotted) sample->dotted = (**member).name;
    RETURN_IF_ERROR(AddMember(file, **member, name->extension, &*sample));
  }
  RETURN_IF_ERROR(finish());
  for (const Sample& left : unfinished.samples()) {
    if (!left.empty()) RETURN_IF_ERROR(AddSample(left, classes, bad));
  }
  return absl::OkStatus();
}

absl::Status ShardList::AddSample(const Sample& sample, int64_t classes, const OnBad& bad) {
  const auto refused = [&](const std::string& why) {
    return bad(absl::InvalidArgumentError(absl::StrCat(sample.where, ": ", why)));
  };
  const std::string rule = sample.Rule();
  if (sample.twice) return refused("has two pictures or two .cls; give one of each");
  if (!sample.picture.has_value() && !sample.label.has_value()) {
    return refused(absl::StrCat("has neither a picture nor a .cls", rule));
  }
  if (!sample.picture.has_value()) {
    return refused(absl::StrCat("has .cls and no picture (.jpg, .png, .tif, .webp)", rule));
  }
  if (!sample.label.has_value()) {
    return refused(absl::StrCat("has a picture and no .cls, its class", rule));
  }
  int64_t label = 0;
  if (sample.label->size() > kMostLabelBytes) {
    return refused(
        absl::StrCat("its .cls has over ", kMostLabelBytes, " bytes; want a decimal number"));
  }
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
