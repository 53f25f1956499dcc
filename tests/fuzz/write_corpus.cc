#include "tests/fuzz/write_corpus.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/gzip_testing.h"
#include "base/files/hash.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "checkpoint/weight_index.h"
#include "coordinator/job/job_json.h"
#include "coordinator/job/view/shown_json.h"
#include "network/network_kinds.h"
#include "network/zoo/every_network_testing.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/schedule_kinds.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/network/convert_network.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/common/convert/spec/job_spec_testing.h"
#include "services/common/http2/frames_testing.h"
#include "services/coordinator/convert/job_codec.h"
#include "stage/data/formats/tar_testing.h"
#include "stage/data/sources/token_file_testing.h"
#include "stage/link/grpc/messages/frame_codec.h"
#include "stage/pictures/picture_testing.h"

namespace stagecoach {
namespace {

using Files = std::map<std::string, std::string>;

std::string After(char first, const std::string& rest) { return first + rest; }
std::string After(char first, const std::vector<uint8_t>& rest) {
  return first + std::string(rest.begin(), rest.end());
}

// As an action of link_fuzz.cc.
std::string Sent(const std::string& message) {
  return absl::StrCat(std::string(1, '\0'), std::string(1, static_cast<char>(message.size())),
                      std::string(1, static_cast<char>(message.size() >> 8)), message);
}

std::string Chunk(uint32_t index, uint64_t offset, const std::string& payload) {
  LinkFrame frame;
  frame.term = 1;
  frame.generation = 2;
  frame.step = 7;
  frame.attempt = 1;
  frame.tensor_index = index;
  frame.tensor_count = 2;
  frame.shape = {2, 2};
  frame.offset = offset;
  frame.data_bytes = payload.size();
  frame.crc32c = Crc32c(std::as_bytes(std::span(payload.data(), payload.size())));
  return EncodeFrameHead(frame) + payload;
}

Files LinkFiles() {
  LinkHello hello;
  hello.boundary = {"job-a", 1, 2, CellId(0)};
  hello.capacity = 2;
  std::string message;
  for (const uint32_t tensor : {0, 1}) {
    absl::StrAppend(&message, Sent(Chunk(tensor, 0, std::string(10, 'a'))),
                    Sent(Chunk(tensor, 10, std::string(6, 'b'))));
  }
  const std::string server(1, '\1'), client(1, '\0'), take(1, '\6'), written(1, '\5');
  const std::string send("\4\0\7\5\4\1\7\5", 8);
  // which, micro-batch, place, dtype, rank, extents, offset, size, payload: as MakeChunk takes
  // them.
  const std::string made("\1\0\0\0\0\1\4\0\4abcd", 13);
  return {
      {"receives", server + message + take + written + message + take},
      {"sends", client + send + written + std::string("\3\1", 2) + send},
      {"makes_chunks", server + made + take + made + take},
      {"second_hello", server + Sent(EncodeHello(hello))},
      {"credit", client + send + Sent(EncodeCredit({1, 0}))},
      // A damaged message, its answer, and the message; the peer's repeat, of the first message.
      {"asks_again", server + Sent("x") + written + std::string("\3\x10", 2) + message + take},
      {"repeats", client + send + written + std::string("\3\x90", 2) + written + written}};
}

Files SafetensorsFiles() {
  FaultFileSystem files;
  const std::string bytes(24, 'x');
  const auto give = [&bytes](size_t size) {
    return [&bytes, size]() -> absl::StatusOr<std::span<const std::byte>> {
      return std::as_bytes(std::span(bytes.data(), size));
    };
  };
  const std::vector<TensorSource> tensors = {{"a", DType::kF32, {2, 3}, give(24)},
                                             {"b/bias", DType::kBF16, {}, give(2)}};
  CHECK_OK(WriteSafetensors(files, "/a", tensors, {{"format", "pt"}}).status());
  const std::string file = files.Contents("/a");
  const std::string header = file.substr(8, file.size() - 8 - 26);
  const WeightIndex index{.total_bytes = 26,
                          .files = {{"a", "model-00001-of-00002.safetensors"},
                                    {"b/bias", "model-00002-of-00002.safetensors"}}};
  return {{"file", After('\0', file)},
          {"header", std::string("\1\x1a\0", 3) + header},
          {"index", After('\2', FormatWeightIndex(index))}};
}

Files RecordFiles() {
  Manifest manifest = ToyManifest("job-1", 3, 12);
  manifest.facts = {.classes = {"ape", "bee"}, .mean = {0.25}, .deviation = {2}};
  manifest.shards = {{.file = "layer-0000-0001.safetensors",
                      .bytes = 100,
                      .sha256 = Sha256Hex("a"),
                      .tensors = {{{"model/0000/w", DType::kF32, {2, 3}, 0, 24}, Sha256Hex("w")}}}};
  const std::string text = FormatManifest(manifest);
  auto definition = std::make_shared<JobDefinition>();
  definition->id = "job-a";
  JobState state = NewJobState(definition, 1, {});
  state.message = "waits for 2 stages";
  state.slots.resize(1);
  state.slots[0].stage.name = "a";
  state.results.measures = {{"accuracy", 0.5}};
  state.failures.steps[3].count = 1;
  state.failures.steps[3].stages = {"a"};
  const ShownAnswers answers = {.step = 4,
                                .answers = {{.label = 1, .answer = 0, .probability = 0.5}}};
  return {{"manifest", After('\0', text.substr(0, text.find(",\"zz_sha256\"")))},
          {"sealed_manifest", After('\1', text)},
          {"state", After('\2', EncodeJobState(state))},
          {"spec", After('\3', ProtoJobCodec().Encode(GptJob()))},
          {"layers", After('\3', ProtoJobCodec().Encode(LayerJob()))},
          {"answers", After('\4', EncodeShownAnswers(answers, {"ape", "bee"}))},
          {"pictures", After('\4', EncodeShownPictures({"\x89PNG"}))}};
}

Files MessageFiles() {
  Files files;
  files["job"] = After('\0', ToProto(GptJob()).SerializeAsString());
  files["layers"] = After('\0', ToProto(LayerJob()).SerializeAsString());
  JobSpec small = GptJob();
  small.network = EveryKind();
  const absl::StatusOr<Network> network = ExpandNetwork(small.network);
  CHECK_OK(network.status());
  files["network"] = After('\1', ToProto(*network).SerializeAsString());
  LoadCommand load;
  load.fence = {"job-a", 1, 2, 3, 4};
  load.spec = GptJob();
  load.network = std::make_shared<const Network>(ExpandJob(GptJob()).value());
  load.partition.first_layers = {0, 1};
  files["load"] = After('\2', ToProto(load).SerializeAsString());
  files["run"] = After('\3', ToProto(RunCommand{.fence = load.fence,
                                                .apply = ApplyDecision{.step = 2, .apply = true},
                                                .work = WorkKind::kTrain})
                                 .SerializeAsString());
  LoadResult loaded;
  loaded.facts.classes = {"ape", "bee"};
  loaded.folder = absl::NotFoundError("/a: no such folder");
  files["loaded"] = After('\5', ToProto(loaded).SerializeAsString());
  StepReport report;
  report.has_loss = true;
  report.measures = {{"accuracy", 0.5}};
  report.layer_squared_norms = {1, 2};
  files["report"] = After('\6', ToProto(report).SerializeAsString());
  files["shard"] = After(
      '\7', ToProto(ShardInfo{.file = "a.safetensors",
                              .bytes = 24,
                              .sha256 = "s",
                              .tensors = {{{"model/0000/w", DType::kF32, {2, 3}, 0, 24}, "t"}}})
                .SerializeAsString());
  v1::GetStageLogsResponse logs;
  logs.add_lines()->set_message("two\nlines");
  files["logs"] = After('\10', logs.SerializeAsString());
  v1::RegisterStageRequest stage;
  stage.mutable_stage()->set_name("stage-0");
  stage.mutable_stage()->set_device("cuda:0");
  stage.mutable_stage()->mutable_card();
  stage.mutable_stage()->mutable_processor()->set_threads(2);
  *stage.mutable_last_death() =
      ToProto(StageDeath{"SIGSEGV",
                         {.job = "a", .term = 1, .generation = 2, .step = 3},
                         MicroBatchId(1),
                         "forward",
                         "linear"});
  files["register"] = After('\11', stage.SerializeAsString());
  v1::RenewLeaseRequest renewal;
  renewal.set_name("stage-0");
  renewal.mutable_telemetry()->add_links()->set_peer("stage 1");
  files["renew"] = After('\12', renewal.SerializeAsString());
  return files;
}

// Behind the size of the pieces.
Files Http2Files() {
  const std::string reset = FrameOf(kResetFrame, 0, 1, std::string(4, '\0'));
  std::string endless = FrameOf(kHeadersFrame, 0, 1, std::string("\0\1a\1b", 5)), call = endless;
  for (int i = 0; i < 5; ++i) endless += FrameOf(kContinuationFrame, 0, 1, "\x82");
  call += FrameOf(kContinuationFrame, kEndHeadersFlag, 1, "\x82") +
          FrameOf(kDataFrame, 1, 1, std::string(40, '\0')) + reset;
  return {{"call", After(4, call)},
          {"endless", After(10, endless)},
          {"long", After(0, FrameOf(kHeadersFrame, 0, 1, "").replace(0, 3, "\1\1\1"))},
          {"settings", After(2, FrameOf(kSettingsFrame, kAckFlag, 0, "") +
                                    FrameOf(kSettingsFrame, 0, 0, std::string(6, '\0')))}};
}

Files ScheduleFiles() {
  Files files;
  for (const std::string& name : ScheduleNames()) {
    ScheduleOptions options;
    options.kind = name;
    options.stages = 2;
    options.micro_batches = 3;
    files[options.kind] = std::string("\0\2\0\7\1", 5) + FormatSchedule(MakeSchedule(options));
    options.tied_cuts = {0};
    options.tied_owners = {0};
    files[options.kind + "_tied"] =
        std::string("\0\2\0\7\1", 5) + FormatSchedule(MakeSchedule(options));
  }
  files["pattern"] =
      "\2\4*a?b"
      "aaxb";
  files["device"] =
      "\3"
      "cuda:1";
  return files;
}

// An IDX file of bytes.
std::string Idx(const std::vector<uint8_t>& extents, const std::string& content, char type = 8) {
  std::string file = {'\0', '\0', type, static_cast<char>(extents.size())};
  for (const uint8_t extent : extents) file += std::string("\0\0\0", 3) + static_cast<char>(extent);
  return file + content;
}

// The JPEG with a block of EXIF that notes this orientation.
std::vector<uint8_t> WithExif(std::vector<uint8_t> jpeg, uint8_t orientation) {
  const std::vector<uint8_t> block = {
      0xff, 0xe1, 0,    34,   'E', 'x', 'i', 'f', 0, 0, 'I',         'I', '*', 0, 8, 0, 0, 0,
      1,    0,    0x12, 0x01, 3,   0,   1,   0,   0, 0, orientation, 0,   0,   0, 0, 0, 0, 0};
  jpeg.insert(jpeg.begin() + 2, block.begin(), block.end());
  return jpeg;
}

Files DataFiles() {
  const Picture colours = MadeUpPicture(9, 7, 3);
  const Picture grey = MadeUpPicture(9, 7, 1);
  Picture mask(3, 4, 1);
  const std::string images = Idx({2, 2, 3}, "abcdefghijkl");
  return {{"jpeg", After('\0', JpegFile(colours))},
          {"progressive_jpeg",
           After('\0', JpegFile(colours, [](auto* info) { jpeg_simple_progression(info); }))},
          {"grey_jpeg", After('\1', JpegFile(grey))},
          {"ink_jpeg", After('\0', JpegFile(MadeUpPicture(9, 7, 4)))},
          {"png", After('\0', PngFile(colours))},
          {"interlaced_png", After('\0', PngFile(9, 7, colours.bytes, {.interlaced = true}))},
          {"grey_png", After('\1', PngFile(grey))},
          {"tiff", After('\0', TiffFile(colours))},
          {"tiled_tiff", After('\1', TiffFile(grey, {.tile = 16, .packing = COMPRESSION_NONE}))},
          {"planes_tiff",
           After('\0', TiffFile(colours, {.by_planes = true, .packing = COMPRESSION_JPEG}))},
          {"webp", After('\0', WebpFile(colours, /*lossless=*/false))},
          {"lossless_webp", After('\0', WebpFile(colours))},
          {"turned_jpeg", After('\10', WithExif(JpegFile(colours), 6))},
          {"mask", After('\2', PngFile(3, 4, mask.bytes,
                                       {.colours = PNG_COLOR_TYPE_PALETTE,
                                        .palette = {{0, 0, 0}, {9, 9, 9}}}))},
          {"tar", After('\3', absl::StrCat(TarMemberText("a.png", "content"),
                                           TarMemberText("x", "18 path=long/b.cls\n", 'x'),
                                           TarMemberText("b", "3"), kTarEnd))},
          {"images", After('\4', images)},
          {"packed_images", After('\4', Gzipped(images))},
          {"labels", After('\5', Idx({3}, "abc"))},
          {"weights", After('\6', Idx({2}, std::string("\x3f\x80\0\0\0\0\0\0", 8), 0x0d))},
          {"gzip", After('\7', Gzipped("text text text text"))},
          {"tokens", After('\11', LlmCFile<uint16_t>({1, 2, 999}))},
          {"token_index", After('\11', MegatronFiles({{1, 2}, {}, {3}}, 8).index)},
          {"json_line", After('\12', R"({"id": [1, {"text": 2}], "text": "\u00e4 b"})")}};
}

}  // namespace

void WriteCorpus(const std::string& folder) {
  const std::map<std::string, Files> all = {
      {"link", LinkFiles()},      {"safetensors", SafetensorsFiles()},
      {"records", RecordFiles()}, {"messages", MessageFiles()},
      {"data_file", DataFiles()}, {"schedule_text", ScheduleFiles()},
      {"http2", Http2Files()}};
  for (const auto& [target, files] : all) {
    std::filesystem::create_directories(absl::StrCat(folder, "/", target));
    for (const auto& [name, bytes] : files) {
      std::ofstream(absl::StrCat(folder, "/", target, "/", name), std::ios::binary) << bytes;
    }
  }
}

}  // namespace stagecoach
