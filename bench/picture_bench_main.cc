// picture-bench: how many images a second sources of pictures give, with nothing else to do:
// decoded, augmented, as numbers. Files are made by the libraries that read them, in a temporary
// folder.
//
//   picture-bench [seconds a row, 2]

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/testing/temporary_folder.h"
#include "plan/data/cifar.h"
#include "plan/data/image_folder.h"
#include "stage/data/open_source.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

void WritePictures(const TemporaryFolder& folder, const std::string& below, int files,
                   int64_t height, int64_t width, bool png) {
  for (int i = 0; i < files; ++i) {
    const Picture picture = MadeUpPicture(height, width, 3, static_cast<uint64_t>(i));
    folder.Write(absl::StrCat(below, "/", i % 2, "/", i, png ? ".png" : ".jpg"),
                 png ? PngFile(picture) : JpegFile(picture));
  }
}

JobSpec JobOn(DataSpec data) {
  JobSpec spec;
  spec.seed = 1;
  spec.network.kind = "resnet";
  spec.training.batch_size = 128;
  spec.training.micro_batches = 4;
  spec.data = std::move(data);
  return spec;
}

Network NetworkOf(int64_t side) {
  Network network;
  network.inputs = {{"images", 0}, {"labels", 10}};
  network.wires = {{.type = ActivationType({side, side, 3})},
                   {.type = {Element::kIds, Leading::kSamples, {}}}};
  return network;
}

double ImagesASecond(const JobSpec& spec, int64_t side, double seconds) {
  const std::vector<std::string> names = {"images", "labels"};
  static DataRoots* const roots = DataRoots::Everything().release();
  auto source = OpenSource(spec, NetworkOf(side), names, *roots);
  CHECK_OK(source.status());
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  int64_t images = 0;
  for (uint64_t step = 0;; ++step) {
    for (int32_t i = 0; i < spec.training.micro_batches; ++i) {
      const auto batch = (*source)->Train(step, MicroBatchId(i), names);
      CHECK_OK(batch.status());
      images += batch->samples;
    }
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    if (step == 0) {  // what was made while it was opened does not count
      start = Clock::now();
      images = 0;
    } else if (took > seconds) {
      return static_cast<double>(images) / took;
    }
  }
}

void Bench(double seconds) {
  const TemporaryFolder folder;
  std::string records;
  for (int i = 0; i < 2000; ++i) {
    records += static_cast<char>(i % 10);
    for (const uint8_t byte : MadeUpPicture(32, 32, 3, static_cast<uint64_t>(i)).bytes) {
      records += static_cast<char>(byte);
    }
  }
  folder.Write("cifar/data_batch_1.bin", records);
  WritePictures(folder, "small", 1000, 32, 32, false);
  WritePictures(folder, "jpeg", 100, 375, 500, false);
  WritePictures(folder, "png", 100, 375, 500, true);

  std::printf("images a second by decode_threads (the stage's own thread helps)\n");
  std::printf("%-44s %10s %10s %10s\n", "", "0", "1", "2");
  const auto row = [&](const char* title, int64_t side, auto data, const PictureFields& fields) {
    std::printf("%-44s", title);
    for (const int64_t threads : {0, 1, 2}) {
      data.pictures = fields;
      data.pictures.decode_threads = threads;
      std::printf(" %10.0f", ImagesASecond(JobOn(data), side, seconds));
      std::fflush(stdout);
    }
    std::printf("\n");
  };
  const PictureFields small{.padding = 4, .flip = true, .cutout = 8};
  const PictureFields large{.random_area = 0.08, .flip = true};
  const PictureFields jitter{
      .random_area = 0.08, .flip = true, .brightness = 0.4, .contrast = 0.4, .saturation = 0.4};
  row("cifar, shift, mirror, cutout", 32, CifarData{.folder = folder.File("cifar")}, small);
  const auto on = [&folder](const char* name) {
    return ImageFolderData{.train = folder.File(name)};
  };
  row("JPEG 32x32, shift, mirror, cutout", 32, on("small"), small);
  row("JPEG 500x375, middle of 256 to 224", 224, on("jpeg"), {.shorter_side = 256});
  row("JPEG 500x375, random part to 224, mirror", 224, on("jpeg"), large);
  row("JPEG 500x375, and colours", 224, on("jpeg"), jitter);
  row("PNG 500x375, random part to 224, mirror", 224, on("png"), large);
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) {
  stagecoach::Bench(argc > 1 ? std::atof(argv[1]) : 2);
  return 0;
}
