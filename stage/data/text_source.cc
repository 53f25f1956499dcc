#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/status.h"
#include "plan/text_check.h"
#include "plan/text_split.h"
#include "stage/data/token_source.h"

namespace stagecoach {
namespace {

constexpr char kPathField[] = "data.text.path";

absl::Status FileError(const std::string& path, int error) {
  const std::string text =
      absl::StrCat(kPathField, " = \"", path, "\": ", std::generic_category().message(error),
                   "; give a path that every stage's machine can read");
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  if (error == EIO) return absl::DataLossError(text);
  return absl::UnavailableError(text);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

// Read into memory and not mapped: a file that shrinks while mapped would kill the process.
absl::StatusOr<std::vector<uint8_t>> ReadFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return FileError(path, errno);
  struct stat information;
  if (fstat(file.number(), &information) != 0) return FileError(path, errno);
  if (!S_ISREG(information.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kPathField, " = \"", path, "\": not a file; give the path of a text file"));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(information.st_size));
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(file.number(), bytes.data() + filled,
                             std::min(bytes.size() - filled, kProgressPieceBytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path, errno);
    if (got == 0) {
      return absl::DataLossError(
          absl::StrCat(kPathField, " = \"", path, "\": became shorter while being read"));
    }
    filled += static_cast<size_t>(got);
    TickProgress();
  }
  return bytes;
}

absl::Status CheckTokens(const std::vector<uint8_t>& bytes, const JobSpec& spec,
                         int64_t vocabulary) {
  const auto at = std::find_if(bytes.begin(), bytes.end(),
                               [vocabulary](uint8_t byte) { return int64_t{byte} >= vocabulary; });
  if (at == bytes.end()) return absl::OkStatus();
  const uint8_t largest = *std::max_element(at, bytes.end());
  const std::string field = absl::StrCat("model.", spec.model.kind, ".vocabulary");
  return absl::InvalidArgumentError(absl::StrCat(
      kPathField, " = \"", spec.data.text.path, "\": byte ", int{*at}, " at offset ",
      at - bytes.begin(), " is not below ", field, " = ", vocabulary, "; set ", field,
      " to at least ", int{largest} + 1, " (256 takes every text) or give another text"));
}

class TextSource final : public TokenSource {
 public:
  TextSource(const JobSpec& spec, int64_t context, std::vector<uint8_t> bytes)
      : seed_(spec.seed),
        batch_size_(spec.training.batch_size),
        micro_batches_(spec.training.micro_batches),
        context_(context),
        bytes_(std::move(bytes)) {
    const int64_t size = static_cast<int64_t>(bytes_.size());
    const TextSplit split = SplitText(size, context);
    train_bytes_ = split.train_bytes;
    Sha256 digest;
    digest.Update(std::as_bytes(std::span(bytes_)));
    manifest_ = {.bytes = size,
                 .sha256 = digest.Hex(),
                 .train_sequences = split.train_sequences,
                 .evaluation_sequences = split.evaluation_sequences};
    const int64_t all = (manifest_.evaluation_sequences + batch_size_ - 1) / batch_size_;
    evaluation_batches_ = std::min(spec.evaluation.batches, all);
  }

  const DatasetManifest& manifest() const override { return manifest_; }
  int64_t evaluation_batches() const override { return evaluation_batches_; }

 private:
  TokenBatch TrainTokens(uint64_t step, MicroBatchId micro_batch) const override {
    const Share share = ShareOf(micro_batch);
    const uint64_t all = static_cast<uint64_t>(manifest_.train_sequences);
    const uint64_t first = step * static_cast<uint64_t>(batch_size_) + share.first;
    TokenBatch batch = EmptyBatch(share.count);
    for (int64_t i = 0; i < share.count; ++i) {
      const uint64_t n = first + static_cast<uint64_t>(i);
      const uint64_t sequence = PermuteIndex(seed_, n / all, all, n % all);
      AppendSequence(static_cast<int64_t>(sequence) * context_, &batch);
    }
    return batch;
  }

  TokenBatch EvaluationTokens(uint64_t index, MicroBatchId micro_batch) const override {
    CHECK_LT(index, static_cast<uint64_t>(evaluation_batches_)) << "evaluation mini-batch";
    const Share share = ShareOf(micro_batch);
    const int64_t first = static_cast<int64_t>(index) * batch_size_ + share.first;
    const int64_t count =
        std::clamp<int64_t>(manifest_.evaluation_sequences - first, 0, share.count);
    TokenBatch batch = EmptyBatch(count);
    for (int64_t i = 0; i < count; ++i) {
      AppendSequence(train_bytes_ + (first + i) * context_, &batch);
    }
    return batch;
  }

  // The positions of a micro-batch within its mini-batch.
  struct Share {
    int64_t first = 0;
    int64_t count = 0;
  };

  Share ShareOf(MicroBatchId micro_batch) const {
    CHECK(micro_batch.valid() && micro_batch.value < micro_batches_)
        << "micro-batch " << micro_batch.value << " of " << micro_batches_;
    Share share;
    for (int64_t i = 0; i < micro_batch.value; ++i) {
      share.first += MicroBatchSize(batch_size_, micro_batches_, i);
    }
    share.count = MicroBatchSize(batch_size_, micro_batches_, micro_batch.value);
    return share;
  }

  TokenBatch EmptyBatch(int64_t sequences) const {
    TokenBatch batch{.sequences = sequences};
    batch.inputs.reserve(static_cast<size_t>(sequences * context_));
    batch.targets.reserve(static_cast<size_t>(sequences * context_));
    return batch;
  }

  void AppendSequence(int64_t offset, TokenBatch* batch) const {
    const auto first = bytes_.begin() + offset;
    batch->inputs.insert(batch->inputs.end(), first, first + context_);
    batch->targets.insert(batch->targets.end(), first + 1, first + context_ + 1);
  }

  const uint64_t seed_;
  const int64_t batch_size_, micro_batches_, context_;
  const std::vector<uint8_t> bytes_;
  int64_t train_bytes_ = 0;
  int64_t evaluation_batches_ = 0;
  DatasetManifest manifest_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenTextSource(const JobSpec& spec, int64_t context,
                                                            int64_t vocabulary) {
  CHECK(context > 0 && vocabulary > 0) << "context " << context << ", vocabulary " << vocabulary;
  CHECK(spec.training.batch_size > 0 && spec.training.micro_batches > 0)
      << "the job was validated before";
  absl::StatusOr<std::vector<uint8_t>> bytes = ReadFile(spec.data.text.path);
  if (!bytes.ok()) return bytes.status();
  RETURN_IF_ERROR(
      CheckIsText(spec.data.text, std::string_view(reinterpret_cast<const char*>(bytes->data()),
                                                   std::min(bytes->size(), kTextCheckBytes))));
  RETURN_IF_ERROR(CheckTokens(*bytes, spec, vocabulary));
  RETURN_IF_ERROR(CheckTextLength(spec, context, static_cast<int64_t>(bytes->size())));
  return std::make_unique<TextSource>(spec, context, *std::move(bytes));
}

}  // namespace stagecoach
