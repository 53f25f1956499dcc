// TextSourceTest: a job on a text file in a folder of its own, and what the source gives of it.
#ifndef STAGECOACH_STAGE_DATA_SOURCES_TEXT_SOURCE_TESTING_H_
#define STAGECOACH_STAGE_DATA_SOURCES_TEXT_SOURCE_TESTING_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/gpt.h"
#include "plan/data/text.h"
#include "stage/data/batch_source.h"
#include "stage/data/open_source.h"
#include "stage/data/token_source.h"
#include "stage/files/any_file_testing.h"

namespace stagecoach {

inline TokenBatch TokensOf(const HostBatch& batch) {
  const auto ids = [](const std::vector<std::byte>& bytes) {
    std::vector<int32_t> values(bytes.size() / sizeof(int32_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  if (batch.samples == 0) return {};
  return {batch.samples, ids(batch.arrays.at(0)), ids(batch.arrays.at(1))};
}
inline const std::vector<std::string> kTextInputs = {"tokens", "targets"};
inline TokenBatch Train(const BatchSource& source, uint64_t step, int micro_batch) {
  return TokensOf(*source.Train(step, MicroBatchId(micro_batch), kTextInputs));
}
inline TokenBatch Evaluate(const BatchSource& source, uint64_t batch, int micro_batch) {
  return TokensOf(*source.Evaluation(batch, MicroBatchId(micro_batch), kTextInputs));
}

inline Network NetworkOnText(int64_t context, int64_t vocabulary) {
  const Wire ids{.type = {Element::kIds, Leading::kSamples, {context}}};
  Network network;
  network.inputs = {{"tokens", vocabulary}, {"targets", vocabulary}};
  network.wires = {ids, ids};
  return network;
}

class TextSourceTest : public testing::Test {
 protected:
  TextSourceTest() {
    spec_.name = "job";
    spec_.seed = 42;
    spec_.network = GptSpec{.vocabulary = 256};
    spec_.data = TextData{.path = folder_.File("text"), .bytes = true};
    spec_.training.batch_size = 7;
    spec_.training.micro_batches = 3;
    spec_.evaluation = {.every_steps = 1, .batches = 100};
  }

  void Write(const std::string& text) { folder_.Write("text", text); }
  // A text in which every window of two bytes is unique for a long while.
  static std::string Counting(size_t bytes) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i % 251 + i / 251);
    return text;
  }
  absl::StatusOr<std::unique_ptr<BatchSource>> TryOpen(int64_t context, int64_t vocabulary = 256) {
    return OpenSource(spec_, NetworkOnText(context, vocabulary), kTextInputs, AnyFile());
  }
  std::unique_ptr<BatchSource> Open(int64_t context) {
    absl::StatusOr<std::unique_ptr<BatchSource>> source = TryOpen(context);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  void ExpectRefused(const std::string& text, int64_t context, int64_t vocabulary,
                     const std::vector<std::string>& parts) {
    Write(text);
    const absl::Status status = TryOpen(context, vocabulary).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(part));
    }
  }

  TemporaryFolder folder_;
  JobSpec spec_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_SOURCES_TEXT_SOURCE_TESTING_H_
