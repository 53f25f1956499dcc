// Fixture for tests of picture sources: a folder, a job, a network that reads images and labels.
#ifndef STAGECOACH_STAGE_DATA_PICTURE_SOURCE_TESTING_H_
#define STAGECOACH_STAGE_DATA_PICTURE_SOURCE_TESTING_H_

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/testing/temporary_folder.h"
#include "gtest/gtest.h"
#include "stage/data/open_source.h"
#include "stage/files/any_file_testing.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {

// All of its notes.
inline std::string NoteOf(const BatchSource& source) { return absl::StrJoin(source.notes(), "; "); }

// A file of 8 x 8 pixels of one grey.
inline std::vector<uint8_t> GreyPng(int grey) {
  Picture picture(8, 8, 3);
  std::fill(picture.bytes.begin(), picture.bytes.end(), static_cast<uint8_t>(grey));
  return PngFile(picture);
}

class PictureSourceTest : public testing::Test {
 protected:
  PictureSourceTest() {
    spec_.seed = 42;
    spec_.network.kind = "resnet";
    spec_.training.batch_size = 7;
    spec_.training.micro_batches = 3;
    spec_.evaluation = {.every_steps = 1, .batches = 100};
    SetImage({32, 32, 3});
  }

  void SetImage(const Shape& image, int64_t classes = 10) {
    network_.inputs = {{"images", 0}, {"labels", classes}};
    network_.wires = {{.type = ActivationType(image)},
                      {.type = {Element::kIds, Leading::kSamples, {}}}};
  }
  // From now on only the folder of the test may be read, without links.
  void ReadOnlyFolder() {
    own_roots_ = std::make_unique<DataRoots>(DataRoots::Options{.roots = {folder_.path()}});
    roots_ = own_roots_.get();
  }
  std::string PathOf(const std::string& name) const { return folder_.File(name); }
  template <typename Bytes>
  void Write(const std::string& name, const Bytes& bytes) {
    folder_.Write(name, bytes);
  }
  absl::StatusOr<std::unique_ptr<BatchSource>> TryOpen(const std::vector<std::string>& reads) {
    return OpenSource(spec_, network_, reads, *roots_);
  }
  std::unique_ptr<BatchSource> Open(const std::vector<std::string>& reads = {"images", "labels"}) {
    auto source = TryOpen(reads);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }
  std::string Refusal(const std::vector<std::string>& reads = {"images", "labels"}) {
    const absl::Status status = TryOpen(reads).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }

  template <typename T>
  static std::vector<T> ValuesOf(const std::vector<std::byte>& array) {
    std::vector<T> values(array.size() / sizeof(T));
    std::memcpy(values.data(), array.data(), array.size());
    return values;
  }
  // Images and labels of all micro-batches of some steps.
  struct Taken {
    std::vector<float> images;
    std::vector<int32_t> labels;
    friend bool operator==(const Taken&, const Taken&) = default;
  };
  // The first number of each of these pictures, as a byte.
  std::vector<int> FirstBytes(const Taken& taken) const {
    const auto picture = static_cast<size_t>(network_.wires[0].type.shape.elements());
    std::vector<int> first;
    for (size_t i = 0; i < taken.images.size(); i += picture) {
      first.push_back(static_cast<int>(taken.images[i] * 255 + 0.5F));
    }
    return first;
  }
  // The first error of the training steps up to `end`.
  absl::Status StepError(const BatchSource& source, uint64_t end,
                         const std::vector<std::string>& reads = {"images"}) const {
    for (uint64_t step = 0; step < end; ++step) {
      for (int32_t i = 0; i < spec_.training.micro_batches; ++i) {
        const auto batch = source.Train(step, MicroBatchId(i), reads);
        if (!batch.ok()) return batch.status();
      }
    }
    return absl::OkStatus();
  }
  Taken TakeAll(const BatchSource& source, bool training, uint64_t first, uint64_t end) const {
    const std::vector<std::string> names = {"images", "labels"};
    Taken taken;
    for (uint64_t step = first; step < end; ++step) {
      for (int32_t i = 0; i < spec_.training.micro_batches; ++i) {
        const absl::StatusOr<HostBatch> batch =
            training ? source.Train(step, MicroBatchId(i), names)
                     : source.Evaluation(step, MicroBatchId(i), names);
        EXPECT_TRUE(batch.ok()) << batch.status();
        if (!batch.ok() || batch->samples == 0) continue;
        for (const float x : ValuesOf<float>(batch->arrays.at(0))) taken.images.push_back(x);
        for (const int32_t x : ValuesOf<int32_t>(batch->arrays.at(1))) taken.labels.push_back(x);
      }
    }
    return taken;
  }

  std::unique_ptr<DataRoots> own_roots_;
  const DataRoots* roots_ = &AnyFile();
  const TemporaryFolder folder_;
  JobSpec spec_;
  Network network_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PICTURE_SOURCE_TESTING_H_
