// Fixture for tests of picture sources: a folder, a job, a network that reads images and labels.
#ifndef STAGECOACH_STAGE_DATA_PICTURE_SOURCE_TESTING_H_
#define STAGECOACH_STAGE_DATA_PICTURE_SOURCE_TESTING_H_

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "stage/data/open_source.h"
#include "stage/files/any_file_testing.h"

namespace stagecoach {

// All of its notes.
inline std::string NoteOf(const BatchSource& source) { return absl::StrJoin(source.notes(), "; "); }

class PictureSourceTest : public testing::Test {
 protected:
  PictureSourceTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stagecoach-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    spec_.seed = 42;
    spec_.network.kind = "resnet";
    spec_.training.batch_size = 7;
    spec_.training.micro_batches = 3;
    spec_.evaluation = {.every_steps = 1, .batches = 100};
    SetImage({32, 32, 3});
  }
  ~PictureSourceTest() override { std::filesystem::remove_all(folder_); }

  void SetImage(const Shape& image, int64_t classes = 10) {
    network_.inputs = {{"images", 0}, {"labels", classes}};
    network_.wires = {{.type = ActivationType(image)},
                      {.type = {Element::kIds, Leading::kSamples, {}}}};
  }
  // From now on only the folder of the test may be read, without links.
  void ReadOnlyFolder() {
    own_roots_ = std::make_unique<DataRoots>(DataRoots::Options{.roots = {folder_}});
    roots_ = own_roots_.get();
  }
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }
  template <typename Bytes>
  void Write(const std::string& name, const Bytes& bytes) {
    std::filesystem::create_directories(std::filesystem::path(PathOf(name)).parent_path());
    std::ofstream(PathOf(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
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
  std::string folder_;
  JobSpec spec_;
  Network network_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PICTURE_SOURCE_TESTING_H_
