#include "stage/weights/weight_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/name_patterns.h"
#include "base/numbers/bfloat16.h"
#include "base/numbers/float16.h"
#include "base/utf8.h"
#include "checkpoint/content_digest.h"
#include "stage/weights/name_hint.h"
#include "stage/weights/open_weights.h"
#include "stage/weights/position_grid.h"

namespace stagecoach {
namespace {

// As Hugging Face's libraries name them.
constexpr char kOneShard[] =
    "*-?????"
    "-of-?????.safetensors";

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

std::string TypeText(DType dtype, const Shape& shape) {
  return absl::StrCat(DTypeName(dtype), " ", shape.ToString());
}

bool IsIgnored(const WeightTable& table, const std::string& tensor) {
  return std::any_of(
      table.ignored.begin(), table.ignored.end(),
      [&tensor](const std::string& pattern) { return MatchesPattern(pattern, tensor); });
}

// The patterns of a job, and which of them have matched something.
class Exceptions {
 public:
  explicit Exceptions(const std::vector<std::string>& patterns)
      : patterns_(patterns), used_(patterns.size(), false) {}

  bool Match(const std::string& name) {
    bool any = false;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (!MatchesPattern(patterns_[i], name)) continue;
      any = used_[i] = true;
    }
    return any;
  }

  absl::Status CheckUsed(const std::string& where) const {
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (used_[i]) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("initialize.except[", i, "]: \"", patterns_[i],
                       "\"; must match a name of the network's or of a tensor in ", where,
                       ", * standing for any characters"));
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<std::string>& patterns_;
  std::vector<bool> used_;
};

// Misfits of file and job. The error has the first of them.
class Misfits {
 public:
  // remedy: of a file that fits otherwise.
  void Add(const std::string& text, const std::string& remedy) {
    if (count_++ == 0) first_ = {text, remedy};
  }
  // An array of the network lacks its tensors.
  void AddArray(const std::string& text, const std::string& remedy) {
    Add(text, remedy);
    ++arrays_;
  }
  // found: arrays of the network with their tensors.
  absl::Status status(const std::string& where, size_t found) const {
    if (count_ == 0) return absl::OkStatus();
    const std::string more =
        count_ == 1 ? "" : absl::StrCat(" (and ", count_ - 1, " more that do not fit)");
    // Patterns for most of its arrays would let the job begin with nothing.
    const std::string remedy =
        arrays_ > found
            ? absl::StrCat("; of ", found + arrays_, " arrays ", found,
                           " fit: give the weights of this network, or the network of these "
                           "weights")
            : first_.remedy;
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", first_.text, remedy, more));
  }

 private:
  struct Text {
    std::string text, remedy;
  };
  Text first_;
  size_t count_ = 0, arrays_ = 0;
};

std::string Remedy(const std::string& name, const char* purpose, const char* or_else = "") {
  return absl::StrCat("; ", or_else, "put \"", ShownName(name), "\" into initialize.except ",
                      purpose);
}

constexpr char kBegins[] = "to begin it with the seed's values";

void AddMissing(const WeightName& name, const WeightPart& part, Misfits* misfits) {
  misfits->AddArray(absl::StrCat("there is no tensor ", part.tensor, " ", part.shape.ToString(),
                                 ", which the job's ", name.ours, " begins with"),
                    Remedy(name.parts.size() == 1 ? part.tensor : name.ours, kBegins));
}

bool Fits(const WeightName& name, const WeightPart& part, const Shape& tensor) {
  return tensor == part.shape || CanResamplePositions(name, part, tensor);
}

void AddMisshapen(const WeightName& name, const WeightPart& part, const TensorEntry& entry,
                  Misfits* misfits) {
  std::string text =
      absl::StrCat("tensor ", entry.name, " is ", TypeText(entry.dtype, entry.shape),
                   ", where the job's ", name.ours, " has F32 ", part.shape.ToString());
  const std::string& excepted = name.parts.size() == 1 ? part.tensor : name.ours;
  if (!IsFloat(entry.dtype)) {
    misfits->AddArray(text, "; write it as F32, F16 or BF16");
  } else if (const int64_t rows = PatchRows(name, part, entry.shape); rows > 0) {
    absl::StrAppend(&text, ", and positions of ", rows,
                    " patches, which is not a square, are not resampled");
    misfits->AddArray(text, Remedy(excepted, kBegins, "set the image size of the file, or "));
  } else {
    misfits->AddArray(text, Remedy(excepted, kBegins));
  }
}

void AddUnknown(const TensorEntry& entry, const std::string& table, Misfits* misfits) {
  misfits->Add(absl::StrCat("tensor ", ShownName(entry.name), " ", entry.shape.ToString(),
                            " is none of the job's by the names of ", table),
               Remedy(entry.name, "to leave it out"));
}

// Does a pattern of the job name the array? One that names only some of its tensors is refused: they
// are one array here.
absl::StatusOr<bool> IsExcepted(const WeightName& name, Exceptions& exceptions) {
  const bool ours = exceptions.Match(name.ours);
  size_t matched = 0;
  const WeightPart* left = nullptr;
  for (const WeightPart& part : name.parts) {
    bool tensor = exceptions.Match(part.tensor);
    for (const std::string& alias : part.aliases) tensor = exceptions.Match(alias) || tensor;
    if (tensor) {
      ++matched;
    } else {
      left = &part;
    }
  }
  if (ours || matched == name.parts.size()) return true;
  if (matched == 0) return false;
  return absl::InvalidArgumentError(
      absl::StrCat("initialize.except: names a part of ", name.ours, " and not its ", left->tensor,
                   ", which are one array here: name all of it, as by \"", name.ours, "\""));
}

// The end of `numbers`, in the file's type: there is no second copy of a large tensor.
std::span<std::byte> EndOf(std::span<float> numbers, const TensorEntry& entry) {
  return std::as_writable_bytes(numbers).last(static_cast<size_t>(entry.bytes()));
}

// Widens what stands at EndOf(numbers). A number that is written ends where the unread ones begin, or in
// front of them.
void WidenInPlace(DType dtype, std::span<float> numbers) {
  const auto widen = [numbers]<typename Narrow>(Narrow) {
    const std::byte* const from =
        std::as_writable_bytes(numbers).data() + numbers.size() * (sizeof(float) - sizeof(Narrow));
    for (size_t i = 0; i < numbers.size(); ++i) {
      Narrow number;
      std::memcpy(&number, from + i * sizeof(number), sizeof(number));
      numbers[i] = static_cast<float>(number);
    }
  };
  if (dtype == DType::kF16) widen(Float16());
  if (dtype == DType::kBF16) widen(Bfloat16());
}

// Where the whole tensor stands in our array as it is in the file; empty: nowhere.
std::span<float> PlaceOf(const WeightName& name, size_t index, std::span<float> ours) {
  const WeightPart& part = name.parts[index];
  CHECK_GE(name.shape.rank(), 1) << name.ours;
  CHECK_EQ(std::ssize(ours), name.shape.elements()) << name.ours;
  int64_t row = 0;
  for (size_t i = 0; i < index; ++i) row += name.parts[i].rows;
  const int64_t elements = part.shape.elements();
  const int64_t of_row = name.shape.elements() / name.shape[0];
  if (part.first != 0 || part.rows * of_row != elements) return {};
  if (!std::is_sorted(part.axes.begin(), part.axes.end())) return {};
  return ours.subspan(static_cast<size_t>(row * of_row), static_cast<size_t>(elements));
}

}  // namespace

std::string WeightFile::Where() const { return FromText(path_); }

absl::StatusOr<std::unique_ptr<WeightFile>> WeightFile::Open(ReadableFiles& files,
                                                             const InitializeSpec& spec,
                                                             const Network& network) {
  ASSIGN_OR_RETURN(const WeightTable table,
                   Annotate(WeightNames(network, spec.names), "initialize.names"));
  ASSIGN_OR_RETURN(OpenedWeights opened, OpenWeights(files, spec.from));
  std::unique_ptr<WeightFile> file(new WeightFile(opened.path, std::move(opened.shards)));
  if (file->shards_.are_adapters()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->Where(),
                     ": holds adapters alone; name the weights that they adapt, and "
                     "go on with the adapters by resume.job"));
  }
  if (const absl::Status fits = file->Match(spec, table); !fits.ok()) {
    const std::string hint = MatchesPattern(kOneShard, opened.path)
                                 ? "is one of several shards; give the folder with all of them"
                                 : NameHint(file->shards_.tensors(), network, spec.names);
    return hint.empty() ? fits
                        : absl::InvalidArgumentError(absl::StrCat(file->Where(), ": ", hint));
  }
  RETURN_IF_ERROR(file->MatchCopies(table));
  return file;
}

const TensorEntry* WeightFile::Find(const WeightPart& part) const {
  const TensorEntry* entry = shards_.Find(part.tensor);
  for (size_t i = 0; entry == nullptr && i < part.aliases.size(); ++i) {
    entry = shards_.Find(part.aliases[i]);
  }
  return entry;
}

const TensorEntry* WeightFile::FindOther(const WeightPart& part, const TensorEntry& found) const {
  for (const std::string& alias : part.aliases) {
    const TensorEntry* const entry = shards_.Find(alias);
    if (entry != nullptr && entry != &found) return entry;
  }
  return nullptr;
}

absl::Status WeightFile::Match(const InitializeSpec& spec, const WeightTable& table) {
  Exceptions exceptions(spec.except);
  Misfits misfits;
  std::set<std::string> known;  // of the file's
  arrays_ = table.names.size();
  for (const WeightName& name : table.names) {
    for (const WeightPart& part : name.parts) {
      known.insert(part.tensor);
      known.insert(part.aliases.begin(), part.aliases.end());
    }
    ASSIGN_OR_RETURN(const bool excepted, IsExcepted(name, exceptions));
    if (excepted) continue;
    Found found{name, {}};
    for (const WeightPart& part : name.parts) {
      const TensorEntry* const entry = Find(part);
      if (entry == nullptr) {
        AddMissing(name, part, &misfits);
      } else if (const TensorEntry* const other = FindOther(part, *entry); other != nullptr) {
        misfits.AddArray(absl::StrCat("tensors ", entry->name, " and ", other->name,
                                      " are both the job's ", name.ours),
                         "; save the file with one of them");
      } else if (!IsFloat(entry->dtype) || !Fits(name, part, entry->shape)) {
        AddMisshapen(name, part, *entry, &misfits);
      } else {
        found.entries.push_back(entry);
        continue;
      }
      break;
    }
    if (found.entries.size() == name.parts.size()) found_[name.ours] = std::move(found);
  }
  for (const WeightCopy& copy : table.copies) {
    known.insert(copy.tensor);
    if (exceptions.Match(copy.tensor)) excepted_copies_.insert(copy.tensor);
  }
  for (const TensorEntry& entry : shards_.tensors()) {
    if (known.contains(entry.name)) continue;
    if (exceptions.Match(entry.name) || IsIgnored(table, entry.name)) continue;
    AddUnknown(entry, spec.names, &misfits);
  }
  RETURN_IF_ERROR(misfits.status(Where(), found_.size()));
  RETURN_IF_ERROR(exceptions.CheckUsed(path_));
  if (!found_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("initialize.except: ", spec.except.size(),
                                                 " patterns; must leave something to take from ",
                                                 path_));
}

absl::Status WeightFile::CopiesDiffer(const std::string& ours, const TensorEntry& copy) const {
  return absl::InvalidArgumentError(absl::StrCat(
      Where(), ": tensors ", copy.name, " and ", found_.at(ours).entries.front()->name,
      " differ, and the job's ", ours, " is both: ",
      copy.shape.rank() == 2 ? "set tied_embeddings: false if the network has that field, or " : "",
      "put \"", copy.name, "\" into initialize.except to leave it out"));
}

absl::Status WeightFile::MatchCopies(const WeightTable& table) {
  for (const WeightCopy& copy : table.copies) {
    const auto owner = std::find_if(
        table.names.begin(), table.names.end(),
        [&copy](const WeightName& name) { return name.parts.front().tensor == copy.of; });
    CHECK(owner != table.names.end()) << copy.of;
    const TensorEntry* const one = shards_.Find(copy.tensor);
    const auto found = found_.find(owner->ours);
    if (one == nullptr || found == found_.end() || excepted_copies_.contains(copy.tensor)) continue;
    const TensorEntry& other = *found->second.entries.front();
    if (one->dtype != other.dtype || one->shape != other.shape) {
      return CopiesDiffer(owner->ours, *one);
    }
    copies_.emplace(owner->ours, one);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WeightFile::ReadBytes(const TensorEntry& entry,
                                                  std::span<std::byte> bytes) {
  ASSIGN_OR_RETURN(const std::string digest, Annotate(shards_.Read(entry, bytes), Where()));
  const auto [before, first] = read_.try_emplace(entry.name, digest);
  if (first || before->second == digest) return digest;
  return absl::FailedPreconditionError(
      absl::StrCat(Where(), ": tensor ", entry.name, " had sha256 ", before->second,
                   ", and now has ", digest, ": the file changed while it was read"));
}

absl::Status WeightFile::CheckCopies(const std::string& ours, const TensorEntry& owner) {
  const auto [begin, end] = copies_.equal_range(ours);
  for (auto copy = begin; copy != end; ++copy) {
    std::vector<std::byte> bytes(static_cast<size_t>(copy->second->bytes()));
    ASSIGN_OR_RETURN(const std::string digest, ReadBytes(*copy->second, bytes));
    if (digest != read_.at(owner.name)) return CopiesDiffer(ours, *copy->second);
  }
  return absl::OkStatus();
}

absl::Status WeightFile::ReadTensor(const TensorEntry& entry, std::span<float> numbers) {
  RETURN_IF_ERROR(ReadBytes(entry, EndOf(numbers, entry)).status());
  WidenInPlace(entry.dtype, numbers);
  const auto bad = std::find_if_not(numbers.begin(), numbers.end(),
                                    [](float number) { return std::isfinite(number); });
  if (bad == numbers.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Where(), ": number ", bad - numbers.begin(),
                                                 " of tensor ", entry.name, " is ", *bad,
                                                 "; weights are finite: give another file"));
}

absl::Status WeightFile::ReadPart(const Found& found, size_t index, std::span<float> values) {
  const auto& [name, entries] = found;
  const WeightPart& part = name.parts[index];
  const TensorEntry& entry = *entries[index];
  const bool same = entry.shape == part.shape;
  if (const std::span<float> place = PlaceOf(name, index, values); same && !place.empty()) {
    return ReadTensor(entry, place);
  }
  std::vector<float> numbers(static_cast<size_t>(entry.shape.elements()));
  RETURN_IF_ERROR(ReadTensor(entry, numbers));
  if (!same) {
    numbers = ResampledPositions(name, part, entry.shape, numbers);
    resampled_.insert(ResampledText(name, part, entry.shape));
  }
  FromTensor(name, index, numbers, values);
  return absl::OkStatus();
}

absl::StatusOr<bool> WeightFile::Read(const std::string& ours, std::span<float> values) {
  const auto found = found_.find(ours);
  if (found == found_.end()) return false;
  if (values.empty()) return true;
  for (size_t i = 0; i < found->second.entries.size(); ++i) {
    RETURN_IF_ERROR(ReadPart(found->second, i, values));
  }
  RETURN_IF_ERROR(CheckCopies(ours, *found->second.entries.front()));
  return true;
}

absl::StatusOr<WeightsRead> WeightFile::Finish() const {
  RETURN_IF_ERROR(Annotate(shards_.CheckUnchanged(), Where()));
  WeightsRead result{.bytes = shards_.file_bytes(),
                     .header_sha256 = shards_.header_sha256(),
                     .tensors = std::ssize(shards_.tensors()),
                     .named_sha256 = shards_.named_sha256()};
  std::vector<TensorDigest> content;
  for (const auto& [name, sha256] : read_) {
    const TensorDigest& tensor = content.emplace_back(DigestOf(*shards_.Find(name), sha256));
    result.read.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.sha256});
  }
  if (std::ssize(read_) < result.tensors || result.named_sha256.empty()) return result;
  const std::string digest = ContentDigest(std::move(content));
  if (digest == result.named_sha256) return result;
  return Annotate(DamagedContent(digest, result.named_sha256), Where());
}

std::vector<std::string> WeightFile::notes() const {
  std::vector<std::string> notes = {
      absl::StrCat("begins with ", found_.size(), " of ", arrays_, " arrays from ", path_)};
  notes.insert(notes.end(), resampled_.begin(), resampled_.end());
  return notes;
}

}  // namespace stagecoach
