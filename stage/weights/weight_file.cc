#include "stage/weights/weight_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/files/name_patterns.h"
#include "base/numbers/bfloat16.h"
#include "base/numbers/float16.h"
#include "base/utf8.h"
#include "checkpoint/content_digest.h"
#include "checkpoint/names.h"
#include "checkpoint/other_weights.h"
#include "stage/weights/name_hint.h"

namespace stagecoach {
namespace {

// PyTorch's count of a batch norm's mini-batches: nothing here reads it.
constexpr char kBatchesTracked[] = "num_batches_tracked";

constexpr char kHowToConvert[] =
    "want a safetensors file, or a folder with a model.safetensors as of exported weights; "
    "docs/formats.md says how PyTorch writes one";

std::string FromText(const std::string& path) {
  return absl::StrCat("initialize.from = \"", ShownName(path), "\"");
}

absl::Status Refusal(const std::string& path, const absl::Status& status) {
  absl::string_view why = status.message();
  absl::ConsumePrefix(&why, absl::StrCat(path, ": "));
  const std::string text = absl::StrCat(FromText(path), ": ", why, "; ", kHowToConvert);
  // Bytes that are none will be none the next time as well.
  if (absl::IsDataLoss(status)) return absl::InvalidArgumentError(text);
  return absl::Status(status.code(), text);
}

// A folder of exported weights is its file. Where nobody can say whether it is there, this is no
// file: a disk that does not answer now may do so the next time.
absl::StatusOr<std::string> FileOf(ReadableFiles& files, const std::string& from) {
  const std::string inside = JoinPath(from, kExportWeightsFile);
  const absl::Status found = files.Look(inside);
  if (found.ok()) return inside;
  if (!absl::IsNotFound(found)) return Refusal(from, found);
  const std::string other = OtherWeightsIn(files, from);
  if (!other.empty()) return Refusal(from, absl::InvalidArgumentError(other));
  return from;
}

absl::StatusOr<SafetensorsReader> OpenReader(ReadableFiles& files, const std::string& path) {
  absl::StatusOr<SafetensorsReader> reader = SafetensorsReader::Open(files, path);
  if (!reader.ok()) return Refusal(path, reader.status());
  return reader;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

std::string TypeText(DType dtype, const Shape& shape) {
  return absl::StrCat(DTypeName(dtype), " ", shape.ToString());
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

// What does not fit; told with the first of it.
class Misfits {
 public:
  void Add(const std::string& text) {
    if (count_++ == 0) first_ = text;
  }
  absl::Status status(const std::string& where) const {
    if (count_ == 0) return absl::OkStatus();
    const std::string more =
        count_ == 1 ? "" : absl::StrCat(" (and ", count_ - 1, " more that do not fit)");
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", first_, more));
  }

 private:
  std::string first_;
  size_t count_ = 0;
};

std::string Remedy(const std::string& name, const char* purpose) {
  return absl::StrCat("; put \"", ShownName(name), "\" into initialize.except ", purpose);
}

constexpr char kBegins[] = "to begin it with the seed's values";

std::string MissingText(const WeightName& name) {
  return absl::StrCat("there is no tensor ", name.other, " ", name.OtherShape().ToString(),
                      ", which the job's ", name.ours, " begins with", Remedy(name.other, kBegins));
}

std::string MisshapenText(const WeightName& name, const TensorEntry& entry) {
  const std::string remedy =
      IsFloat(entry.dtype) ? Remedy(name.other, kBegins) : "; write it as F32, F16 or BF16";
  return absl::StrCat("tensor ", entry.name, " is ", TypeText(entry.dtype, entry.shape),
                      ", where the job's ", name.ours, " has F32 ", name.OtherShape().ToString(),
                      remedy);
}

std::string UnknownText(const TensorEntry& entry, const std::string& table) {
  return absl::StrCat("tensor ", ShownName(entry.name), " ", entry.shape.ToString(),
                      " is none of the job's by the names of ", table,
                      Remedy(entry.name, "to leave it out"));
}

// As float32, in the file's layout.
std::vector<float> Widened(DType dtype, std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / static_cast<size_t>(DTypeSize(dtype)));
  const auto widen = [&]<typename Narrow>(Narrow) {
    for (size_t i = 0; i < values.size(); ++i) {
      Narrow number;
      std::memcpy(&number, bytes.data() + i * sizeof(number), sizeof(number));
      values[i] = static_cast<float>(number);
    }
  };
  if (dtype == DType::kF32) widen(float());
  if (dtype == DType::kF16) widen(Float16());
  if (dtype == DType::kBF16) widen(Bfloat16());
  return values;
}

}  // namespace

std::string WeightFile::Where() const { return FromText(path_); }

absl::StatusOr<std::unique_ptr<WeightFile>> WeightFile::Open(ReadableFiles& files,
                                                             const InitializeSpec& spec,
                                                             const Network& network) {
  ASSIGN_OR_RETURN(const std::vector<WeightName> names,
                   Annotate(WeightNames(network, spec.names), "initialize.names"));
  ASSIGN_OR_RETURN(const std::string path, FileOf(files, spec.from));
  ASSIGN_OR_RETURN(SafetensorsReader reader, OpenReader(files, path));
  std::unique_ptr<WeightFile> file(new WeightFile(path, std::move(reader)));
  if (const absl::Status fits = file->Match(spec, names); !fits.ok()) {
    const std::string hint = NameHint(file->reader_.tensors(), network, spec.names);
    return hint.empty() ? fits
                        : absl::InvalidArgumentError(absl::StrCat(file->Where(), ": ", hint));
  }
  RETURN_IF_ERROR(Annotate(file->Hash(), file->Where()));
  return file;
}

absl::Status WeightFile::Match(const InitializeSpec& spec, const std::vector<WeightName>& names) {
  Exceptions exceptions(spec.except);
  Misfits misfits;
  std::set<std::string> known;  // of the file's
  arrays_ = names.size();
  for (const WeightName& name : names) {
    known.insert({name.other, name.older});
    const bool ours = exceptions.Match(name.ours), other = exceptions.Match(name.other);
    const bool older = !name.older.empty() && exceptions.Match(name.older);
    if (ours || other || older) continue;
    const TensorEntry* entry = reader_.Find(name.other);
    if (entry == nullptr && !name.older.empty()) entry = reader_.Find(name.older);
    if (entry == nullptr) {
      misfits.Add(MissingText(name));
    } else if (!IsFloat(entry->dtype) || entry->shape != name.OtherShape()) {
      misfits.Add(MisshapenText(name, *entry));
    } else {
      found_[name.ours] = {name, entry};
    }
  }
  for (const TensorEntry& entry : reader_.tensors()) {
    if (known.contains(entry.name)) continue;
    if (exceptions.Match(entry.name) || absl::EndsWith(entry.name, kBatchesTracked)) continue;
    misfits.Add(UnknownText(entry, spec.names));
  }
  RETURN_IF_ERROR(misfits.status(Where()));
  RETURN_IF_ERROR(exceptions.CheckUsed(path_));
  if (!found_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("initialize.except: ", spec.except.size(),
                                                 " patterns; must leave something to take from ",
                                                 path_));
}

absl::Status WeightFile::Hash() {
  ASSIGN_OR_RETURN(HashedContent hashed, HashContent(reader_));
  digests_ = std::move(hashed.tensors);
  manifest_ = {reader_.file_bytes(), std::move(hashed.content)};
  return absl::OkStatus();
}

absl::StatusOr<bool> WeightFile::Read(const std::string& ours, std::span<float> values) {
  const auto found = found_.find(ours);
  if (found == found_.end()) return false;
  if (values.empty()) return true;
  const auto& [name, entry] = found->second;
  std::vector<std::byte> bytes(static_cast<size_t>(entry->bytes()));
  RETURN_IF_ERROR(Annotate(reader_.Read(*entry, bytes), Where()));
  const std::string& hashed = digests_[static_cast<size_t>(entry - reader_.tensors().data())];
  if (const std::string found = BytesSha256(bytes); found != hashed) {
    return absl::FailedPreconditionError(
        absl::StrCat(Where(), ": tensor ", entry->name, " had sha256 ", hashed, ", and now has ",
                     found, ": the file changed while it was read"));
  }
  const std::vector<float> numbers = Widened(entry->dtype, bytes);
  const auto bad = std::find_if_not(numbers.begin(), numbers.end(),
                                    [](float number) { return std::isfinite(number); });
  if (bad != numbers.end()) {
    return absl::InvalidArgumentError(absl::StrCat(Where(), ": number ", bad - numbers.begin(),
                                                   " of tensor ", entry->name, " is ", *bad,
                                                   "; weights are finite: give another file"));
  }
  FromOtherLayout(name, numbers, values);
  return true;
}

std::string WeightFile::note() const {
  return absl::StrCat("begins with ", found_.size(), " of ", arrays_, " arrays from ", path_);
}

}  // namespace stagecoach
