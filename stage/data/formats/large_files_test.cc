// Symptom: a data file larger than the machine's memory, as a sparse one of 4 TB, killed every
// stage that opened it.
// Cause: texts, images and CIFAR's records were read whole. Here each file is of 512 MiB and the
// process may have 128 MiB more than it has.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/sanitized.h"
#include "base/testing/temporary_folder.h"
#include "network/zoo/gpt.h"
#include "plan/data/cifar.h"
#include "plan/data/idx.h"
#include "plan/data/text.h"
#include "stage/data/formats/data_file.h"
#include "stage/data/open_source.h"
#include "stage/files/any_file_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kFileBytes = int64_t{1} << 29;

// What this process takes, in bytes: now, or the most since Forget.
int64_t Resident(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string name;
  int64_t kibibytes = 0;
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    if (words >> name >> kibibytes && name == field) return kibibytes << 10;
  }
  return 0;
}
void ForgetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

class LargeFilesTest : public ::testing::Test {
 protected:
  LargeFilesTest() {
    spec_.name = "job";
    spec_.training = {.steps = 2, .batch_size = 4, .micro_batches = 2};
    spec_.evaluation = {.every_steps = 1, .batches = 1};
  }
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer's memory is not the program's";
  }

  // Begins with `head`, ends with `tail`, has zeros between that take no place on the disk.
  std::string Sparse(const std::string& name, const std::string& head, int64_t bytes,
                     const std::string& tail = "") {
    const std::string path = folder_.Write(name, head);
    EXPECT_EQ(truncate(path.c_str(), bytes - std::ssize(tail)), 0);
    std::ofstream(path, std::ios::binary | std::ios::app) << tail;
    return path;
  }

  // Of the network's inputs: a batch of training and one of evaluation.
  void OpenAndRead(const Network& network, const std::vector<std::string>& names) {
    ForgetPeak();
    const int64_t before = Resident("VmRSS:");
    ASSERT_GT(before, 0);
    auto source = OpenSource(spec_, network, names, AnyFile());
    ASSERT_TRUE(source.ok()) << source.status();
    const auto trained = (*source)->Train(1, MicroBatchId(1), names);
    ASSERT_TRUE(trained.ok()) << trained.status();
    EXPECT_EQ(trained->samples, 2);
    const auto evaluated = (*source)->Evaluation(0, MicroBatchId(0), names);
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    EXPECT_EQ(evaluated->samples, 2);
    EXPECT_LT(Resident("VmHWM:") - before, kFileBytes / 4);
  }

  TemporaryFolder folder_;
  JobSpec spec_;
};

Network NetworkOfTwo(const std::string& first, const Wire& wire, int64_t first_classes,
                     const std::string& second, const Wire& second_wire, int64_t classes) {
  Network network;
  network.inputs = {{first, first_classes}, {second, classes}};
  network.wires = {wire, second_wire};
  return network;
}

Network NetworkOfText() {
  const Wire ids{.type = {Element::kIds, Leading::kSamples, {256}}};
  return NetworkOfTwo("tokens", ids, 256, "targets", ids, 256);
}

Network NetworkOfImages(const Shape& image) {
  return NetworkOfTwo("images", {.type = ActivationType(image)}, 0, "labels",
                      {.type = {Element::kIds, Leading::kSamples, {}}}, 10);
}

TEST_F(LargeFilesTest, AText) {
  spec_.network = GptSpec{.vocabulary = 256};
  spec_.data = TextData{.path = Sparse("text", "a", kFileBytes), .bytes = true};
  OpenAndRead(NetworkOfText(), {"tokens", "targets"});
}

TEST_F(LargeFilesTest, ImagesInIdx) {
  // 511 images of 1024 x 1024.
  const std::string images("\0\0\x08\x03\0\0\x01\xff\0\0\x04\0\0\0\x04\0", 16);
  const std::string labels("\0\0\x08\x01\0\0\x01\xff", 8);
  spec_.data = IdxData{.images = Sparse("images", images, 16 + (int64_t{511} << 20)),
                       .labels = Sparse("labels", labels, 8 + 511)};
  OpenAndRead(NetworkOfImages({1024, 1024, 1}), {"images", "labels"});
}

TEST_F(LargeFilesTest, CifarsRecords) {
  Sparse("data_batch_1.bin", "\x03", kFileBytes / 3073 * 3073);
  spec_.data = CifarData{.folder = folder_.path()};
  OpenAndRead(NetworkOfImages({32, 32, 3}), {"images", "labels"});
}

TEST_F(LargeFilesTest, AFileThatWasWrittenToIsNotReadOn) {
  const std::string path = Sparse("text", "a", 10'000);
  spec_.network = GptSpec{.vocabulary = 256};
  spec_.data = TextData{.path = path, .bytes = true};
  const std::vector<std::string> names = {"tokens", "targets"};
  const auto source = OpenSource(spec_, NetworkOfText(), names, AnyFile());
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE((*source)->Train(0, MicroBatchId(0), names).ok());
  const timespec times[2] = {{0, UTIME_OMIT},
                             {1, 0}};  // as if it had been written to at another time
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  const absl::Status changed = (*source)->Train(1, MicroBatchId(0), names).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(changed)) << changed;
  EXPECT_THAT(changed.message(), HasSubstr("data.text.path"));
  EXPECT_THAT(changed.message(), HasSubstr("was written to while the job reads it"));
}

}  // namespace
}  // namespace stagecoach
