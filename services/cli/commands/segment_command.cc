#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/files/file_system.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/new_file.h"
#include "services/cli/pictures/picture_report.h"
#include "services/cli/pictures/segment_picture.h"
#include "stage/pictures/encode.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostPaletteClasses = 256;

// A file that is there already, training's mask perhaps, stays.
absl::Status WriteMaskFile(const std::string& path, std::span<const uint8_t> bytes) {
  FileSystem& files = *PosixFileSystem();
  RETURN_IF_ERROR(files.MakeFolders(std::filesystem::path(path).parent_path().string()));
  return WriteNewFile(files, path, "name another folder with --out",
                      [&](const std::string& unfinished) -> absl::Status {
                        ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                                         files.Create(unfinished));
                        RETURN_IF_ERROR(file->Append(std::as_bytes(bytes)));
                        return file->Close();
                      });
}

class Segmenter {
 public:
  Segmenter(const PictureNetwork& network, std::string out, PictureReport* report)
      : network_(network), out_(std::move(out)), report_(*report) {}

  // An error is one of the network, and the end of it all.
  absl::Status Segment(const PictureFile& file) {
    const absl::StatusOr<Picture> picture =
        ReadPicture(file, network_.form().channels, network_.form().upright);
    if (!picture.ok()) {
      report_.Fail(file, picture.status());
      return absl::OkStatus();
    }
    const absl::StatusOr<Picture> mask = SegmentPicture(network_, *picture);
    if (absl::IsResourceExhausted(mask.status())) return mask.status();
    const std::string path = MaskPath(file);
    absl::Status status = Annotate(mask.status(), ShownName(file.path));
    if (status.ok()) status = Write(file, path, *mask);
    if (status.ok()) {
      Report(file, path, *mask);
    } else {
      report_.Fail(file, status);
    }
    return absl::OkStatus();
  }

 private:
  std::string MaskPath(const PictureFile& file) const {
    return (std::filesystem::path(out_) / file.below).replace_extension(".png").string();
  }

  absl::Status Write(const PictureFile& file, const std::string& path, const Picture& mask) {
    const auto [taken, is_new] = writers_.emplace(path, file.path);
    if (!is_new) {
      return absl::AlreadyExistsError(
          absl::StrCat(ShownName(file.path), ": its mask would be ", ShownName(path), ", which ",
                       ShownName(taken->second), " has already; run it apart with another --out"));
    }
    ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, EncodeMask(mask, network_.classes()));
    return WriteMaskFile(path, bytes);
  }

  void Report(const PictureFile& file, const std::string& path, const Picture& mask) {
    std::array<int64_t, kMostPaletteClasses> pixels = {};
    for (const uint8_t id : mask.bytes) ++pixels[id];
    std::vector<std::vector<std::string>> rows;
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    for (int64_t id = 0; id < network_.classes(); ++id) {
      const int64_t own = pixels[static_cast<size_t>(id)];
      if (own == 0) continue;
      const double share = static_cast<double>(own) / static_cast<double>(mask.bytes.size());
      const std::string name = network_.ClassName(id);
      rows.push_back({name.empty() ? absl::StrCat(id) : ShownName(name),
                      absl::StrFormat("%.4f", share), rows.empty() ? ShownName(path) : ""});
      nlohmann::ordered_json one = {{"class", id}};
      if (!name.empty()) one["name"] = name;
      one["share"] = share;
      classes.push_back(std::move(one));
    }
    report_.Add(file, rows,
                {{"mask", path},
                 {"height", mask.height},
                 {"width", mask.width},
                 {"classes", std::move(classes)}});
  }

  const PictureNetwork& network_;
  const std::string out_;
  PictureReport& report_;
  std::map<std::string, std::string> writers_;  // by the mask's path
};

}  // namespace

int RunSegment(const SegmentOptions& options, CommandContext& context) {
  const absl::StatusOr<FoundWeights> found = FindWeights(options.weights, context);
  if (!found.ok()) return context.console->Fail(found.status());
  const absl::StatusOr<std::unique_ptr<PictureNetwork>> network =
      PictureNetwork::Load(found->source.weights_file(), found->spec, found->facts,
                           PictureAnswer::kClassOfEachPixel, MakeBackendHere(options.weights));
  if (!network.ok()) return context.console->Fail(network.status());
  if ((*network)->classes() > kMostPaletteClasses) {
    return context.console->Fail(absl::InvalidArgumentError(absl::StrCat(
        "model: ", (*network)->classes(), " classes; a mask has a byte for each pixel, so at most ",
        kMostPaletteClasses, " of them")));
  }
  if (const absl::Status made = PosixFileSystem()->MakeFolders(options.out); !made.ok()) {
    return context.console->Fail(Annotate(made, "--out"));
  }
  const std::vector<PictureFile> files = FindPictures(options.pictures);
  PictureReport report(
      {.weights = found->source.name(), .columns = {"CLASS", "SHARE", "MASK"}, .right = {2}},
      context.output, context.console);
  Segmenter segmenter(**network, options.out, &report);
  for (const PictureFile& file : files) {
    if (context.stop->requested()) break;
    const absl::Status status = segmenter.Segment(file);
    if (!status.ok()) return context.console->Fail(status);
  }
  const int code = report.Finish(files.size());
  return context.stop->requested() ? kExitInterrupted : code;
}

}  // namespace stagecoach
