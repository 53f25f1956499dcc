// gpu-operations: every operation at the shapes of real networks: how long it takes, what it
// reaches of the ceilings that the device showed a moment before, and which library and algorithm
// computed it. So that a report says why, not only how slow.
//
//   gpu-operations [--device cuda:0] [--networks gpt2_1.5b,gpt2_124m,resnet_50]
//     [--precision bfloat16] [--seconds 110]
//
// One line of JSON each: the ceilings, who computes attention of which shape, what ends a step, the
// operations, those with the largest share of a micro-batch first. Floor: what a call's FLOPs and
// bytes take at the ceilings at least; of_ceiling: floor / median. Operands lie beyond the caches
// where 16 sets of them suffice. After --seconds the rest is named as not run.
//
//   gpu-operations --matmul-table-out FILE [--device cuda:0] [--job FILE | --networks ...]
//     [--samples N]
//
// times what cuBLASLt offers for each linear call instead, and writes which offers to take:
// docs/gpu.md, "Choice of matrix algorithms".
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/operations/bench_device.h"
#include "bench/operations/ceilings.h"
#include "bench/operations/measured_networks.h"
#include "bench/operations/tune_products.h"
#include "nlohmann/json.hpp"
#include "operations/catalogue.h"
#include "services/cli/spec/spec_reader.h"
#include "services/common/flags/flag_parser.h"
#include "stage/backends/cuda/matmul/matmul_table_file.h"
#include "stage/backends/update_calls.h"

namespace stagecoach {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string device = "cuda:0";
  std::string networks = "gpt2_1.5b,gpt2_124m,resnet_50";
  std::string precision = "bfloat16";
  std::string job;
  double seconds = 110, row_seconds = 0.2;
  int64_t product = 8192, copy_bytes = int64_t{1} << 30, parameters = 100'000'000;
  int threads = 1;
  int64_t samples = 0;  // 0: each network has its own, as has a job
  std::string matmul_table, matmul_table_out;
  double offer_seconds = 0.05;
};

struct Chosen {
  Precision precision;
  std::vector<MeasuredNetwork> networks;
};

// A job has a precision of its own.
absl::StatusOr<Chosen> Choose(const Options& options) {
  if (!options.job.empty()) {
    ASSIGN_OR_RETURN(SpecFile file, ReadSpecFile(options.job));
    ASSIGN_OR_RETURN(const ValidSpecFile valid, ValidateSpecFile(std::move(file)));
    ASSIGN_OR_RETURN(std::vector<MeasuredNetwork> networks,
                     NetworksOfJob(valid.job, options.samples));
    return Chosen{valid.job.precision, std::move(networks)};
  }
  const Precision precision =
      options.precision == "float32" ? Precision::kFloat32 : Precision::kBfloat16;
  ASSIGN_OR_RETURN(std::vector<MeasuredNetwork> networks,
                   ChosenNetworks(options.networks, options.samples, precision));
  return Chosen{precision, std::move(networks)};
}

struct Clock {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

bool g_lost = false;  // a row could not be written

void Print(const Json& row) {
  std::printf("%s\n", row.dump().c_str());
  if (std::fflush(stdout) != 0) g_lost = true;
}

struct Ceilings {
  double flops = 0, bytes = 0;  // a second
};

// A call of one network, and what it takes of a micro-batch at the ceilings.
struct Timed {
  const MeasuredNetwork* row;
  NetworkCall call;
  double products, bytes, floor_seconds;
  double of_micro_batch() const { return floor_seconds * static_cast<double>(call.times); }
};

// An attention of a network in which every column exists.
struct NamedAttention {
  Attributes attributes;
  Shape qkv;  // of its type
};

class Table {
 public:
  Table(const Options& options, Chosen chosen, Backend& backend)
      : options_(options),
        backend_(backend),
        precision_(chosen.precision),
        networks_(std::move(chosen.networks)),
        timer_(backend, options.row_seconds) {}

  absl::Status Run();

 private:
  absl::Status MeasureCeilings();
  absl::Status NameAttention(const MeasuredNetwork& row);
  // With a context `times` as long.
  absl::Status NameAttention(const MeasuredNetwork& row, const NamedAttention& attention,
                             int64_t times, int64_t sequences);
  void Collect(const MeasuredNetwork& row);
  void TimeRow(const Timed& timed);
  absl::Status TimeUpdate();
  void Say(Json json, double bytes, double floor_seconds, const TimedCall& result);

  const Options& options_;
  Backend& backend_;
  const Precision precision_;
  const std::vector<MeasuredNetwork> networks_;
  CallTimer timer_;
  const Clock clock_;
  Ceilings ceilings_;
  std::vector<Timed> rows_;
};

absl::Status Table::MeasureCeilings() {
  ASSIGN_OR_RETURN(const Rates product, ProductRates(backend_, precision_, options_.product, 2));
  ASSIGN_OR_RETURN(const Rates copy, CopyRates(backend_, options_.copy_bytes, 1));
  ceilings_ = {product.median, copy.median};
  Print({{"row", "ceilings"},
         {"device", options_.device},
         {"fingerprint", backend_.fingerprint()},
         {"precision", PrecisionName(precision_)},
         {"product_side", options_.product},
         {"tflops", product.median / 1e12},
         {"copy_bytes", options_.copy_bytes},
         {"gbs", copy.median / 1e9}});
  return absl::OkStatus();
}

absl::Status Table::NameAttention(const MeasuredNetwork& row, const NamedAttention& attention,
                                  int64_t times, int64_t sequences) {
  const Call call{.operation = "attention", .attributes = attention.attributes};
  const int64_t context = attention.qkv[0] * times;
  CallTypes types{{ActivationType({context, attention.qkv[1]})}, {}, {}};
  ASSIGN_OR_RETURN(types.outputs,
                   OperationNamed(call.operation).Types(call.attributes, types.inputs, {}));
  const int64_t heads = std::get<int64_t>(*call.attributes.Find("heads"));
  Json json{{"row", "attention"}, {"network", row.name},
            {"context", context}, {"sequences", sequences},
            {"heads", heads},     {"head_width", types.outputs[0].shape[1] / heads}};
  const auto described = backend_.Describe(call, types, sequences, ComputeDType(precision_));
  if (described.ok()) {
    json["way"] = described->way.empty() ? "the only one" : described->way;
    if (!described->why.empty()) json["why"] = described->why;
  } else {
    json["error"] = described.status().ToString();
  }
  Print(json);
  return absl::OkStatus();
}

// For each context that training is measured at.
absl::Status Table::NameAttention(const MeasuredNetwork& row) {
  std::vector<NamedAttention> named;
  for (const NetworkLayer& layer : row.network.layers) {
    for (const ListedCall& listed : layer.lists->forward.calls) {
      if (listed.call.operation != "attention" || listed.call.inputs.size() > 1) continue;
      named.push_back({listed.call.attributes, layer.lists->TypesOf(listed.call).inputs[0].shape});
    }
    if (!named.empty()) break;  // the others are like it
  }
  for (const NamedAttention& attention : named) {
    for (const int64_t times : {1, 4}) {
      RETURN_IF_ERROR(
          NameAttention(row, attention, times, std::max<int64_t>(1, row.samples / times)));
    }
  }
  return absl::OkStatus();
}

void Table::Collect(const MeasuredNetwork& row) {
  for (NetworkCall& call : NetworkCalls(row.network, row.samples, backend_.HeadChunks())) {
    const Operation& operation = OperationNamed(call.call.operation);
    const auto products = static_cast<double>(
        operation.CostOf(call.call.attributes, call.types, call.samples).products);
    const auto bytes =
        static_cast<double>(LeastBytes(call.types, call.samples, ComputeDType(precision_)));
    const double floor = FloorSeconds(products, bytes, ceilings_.flops, ceilings_.bytes);
    rows_.push_back({&row, std::move(call), products, bytes, floor});
  }
}

void Table::TimeRow(const Timed& timed) {
  const NetworkCall& call = timed.call;
  Json json{{"row", "operation"},
            {"network", timed.row->name},
            {"operation", call.call.operation},
            {"attributes", FormatAttributes(call.call.attributes)},
            {"inputs", InputsText(call.types)},
            {"samples", call.samples},
            {"times", call.times}};
  if (clock_.Seconds() > options_.seconds) {
    json["not_run"] = "time";
    return Print(json);
  }
  const auto result = timer_.Time(call, call.samples, ComputeDType(precision_));
  if (!result.ok()) {
    json["not_run"] = result.status().ToString();
    backend_.EndCell();  // forgets a refusal of memory
    return Print(json);
  }
  if (timed.products > 0) json["tflops"] = timed.products / result->median_seconds / 1e12;
  Say(std::move(json), timed.bytes, timed.floor_seconds, *result);
}

void Table::Say(Json json, double bytes, double floor_seconds, const TimedCall& result) {
  const double seconds = result.median_seconds;
  json["us"] = seconds * 1e6;
  json["least_us"] = result.least_seconds * 1e6;
  json["gbs"] = bytes / seconds / 1e9;
  json["of_ceiling"] = floor_seconds / seconds;
  json["runs"] = result.runs;
  json["way"] = absl::StrJoin(result.ways, "; ");
  Print(json);
}

// What ends a step, of so many parameters of one tensor.
absl::Status Table::TimeUpdate() {
  const Shape shape{options_.parameters};
  UpdateCall call{.operation = "adamw_update", .adds = {}};
  for (int i = 0; i < 4; ++i) {  // gradient, value, m, v
    ASSIGN_OR_RETURN(Tensor tensor, timer_.tensors().Numbers(DType::kF32, shape));
    call.adds.push_back(std::move(tensor));
  }
  backend_.Fill(call.adds[3], 1.0f);
  double update_bytes = 7 * 4;  // value, m and v read and written, the gradient read
  if (precision_ == Precision::kBfloat16) {
    ASSIGN_OR_RETURN(Tensor copy, timer_.tensors().Numbers(DType::kBF16, shape));
    call.adds.push_back(std::move(copy));
    update_bytes += 2;
  }
  ASSIGN_OR_RETURN(const Tensor norm,
                   MakeTensor(backend_.allocator(), MemoryKind::kWorkspace, DType::kF64, {1}));
  const Tensor gradient = call.adds[0];
  ASSIGN_OR_RETURN(const PreparedUpdates update, PreparedUpdates::Prepare(backend_, {call}));
  const std::tuple<const char*, double, std::function<void(int64_t)>> rows[] = {
      {"adamw", update_bytes, [&](int64_t) { update.Run({.learning_rate = 1e-4}); }},
      {"squared_norm", 4, [&](int64_t) { backend_.SquaredNorm(gradient, norm); }},
      {"fill", 4, [&](int64_t) {
         backend_.FillAll({&gradient, 1}, 0.0f);
       }}};
  for (const auto& [name, parameter_bytes, run] : rows) {
    ASSIGN_OR_RETURN(const TimedCall result, timer_.Time(run));
    const double bytes = parameter_bytes * static_cast<double>(options_.parameters);
    Say({{"row", "update"}, {"operation", name}, {"parameters", options_.parameters}}, bytes,
        bytes / ceilings_.bytes, result);
  }
  return absl::OkStatus();
}

absl::Status Table::Run() {
  backend_.SetPrecision(precision_);
  RETURN_IF_ERROR(MeasureCeilings());
  for (const MeasuredNetwork& row : networks_) {
    RETURN_IF_ERROR(NameAttention(row));
    Collect(row);
  }
  std::stable_sort(rows_.begin(), rows_.end(), [](const Timed& a, const Timed& b) {
    return a.of_micro_batch() > b.of_micro_batch();
  });
  if (const absl::Status status = TimeUpdate(); !status.ok()) {
    Print({{"row", "update"},
           {"operation", "all"},
           {"parameters", options_.parameters},
           {"not_run", status.ToString()}});
    backend_.EndCell();
  }
  for (const Timed& timed : rows_) {
    TimeRow(timed);
    RETURN_IF_ERROR(backend_.Fault());
  }
  return absl::OkStatus();
}

// What was chosen for one product: the call's time with the offer that the library would be
// believed, and with the chosen one.
Json ChoiceRow(const MeasuredNetwork& row, const NetworkCall& call,
               const cuda::TunedProduct& tuned) {
  Json json{{"row", "matmul"},
            {"network", row.name},
            {"operation", call.call.operation},
            {"product", cuda::ShapeText(tuned.shape)},
            {"offers", tuned.offers.size()}};
  if (tuned.chosen < 0) {
    json["not_run"] = "the library has no offer that may be taken";
    return json;
  }
  const auto chosen = static_cast<size_t>(tuned.chosen);
  json["first_us"] = tuned.seconds[static_cast<size_t>(tuned.first)] * 1e6;  // null: refused
  json["us"] = tuned.seconds[chosen] * 1e6;
  json["place"] = chosen;
  json["fused"] = cuda::EpilogueName(tuned.offers[chosen].fused);
  json["algorithm"] = cuda::AlgorithmText(tuned.offers[chosen].candidate.algorithm);
  return json;
}

absl::Status TuneNetwork(const MeasuredNetwork& row, Precision precision, Backend& backend,
                         ProductTuner& tuner) {
  for (const NetworkCall& call : NetworkCalls(row.network, row.samples, backend.HeadChunks())) {
    if (!IsLinear(call)) continue;
    const auto tuned = tuner.Tune(call, call.samples, ComputeDType(precision));
    RETURN_IF_ERROR(backend.Fault());
    if (absl::IsResourceExhausted(tuned.status())) {
      Print({{"row", "matmul"},
             {"network", row.name},
             {"operation", call.call.operation},
             {"inputs", InputsText(call.types)},
             {"not_run", tuned.status().ToString()}});
      backend.EndCell();  // forgets the refusal
      continue;
    }
    RETURN_IF_ERROR(tuned.status());
    for (const cuda::TunedProduct& product : *tuned) Print(ChoiceRow(row, call, product));
  }
  return absl::OkStatus();
}

absl::Status WriteTable(const Options& options) {
  RETURN_IF_ERROR(CheckTunable(options.device));
  if (!options.matmul_table.empty()) {
    return absl::InvalidArgumentError(
        "--matmul-table-out: not with --matmul-table; leave one of them");
  }
  ASSIGN_OR_RETURN(const Chosen chosen, Choose(options));
  RETURN_IF_ERROR(cuda::CheckMatmulTableFile(options.matmul_table_out));
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBenchBackend(options.device, {}));
  backend->SetPrecision(chosen.precision);
  ASSIGN_OR_RETURN(ProductTuner tuner, ProductTuner::Make(*backend, options.offer_seconds));
  for (const MeasuredNetwork& row : chosen.networks) {
    RETURN_IF_ERROR(TuneNetwork(row, chosen.precision, *backend, tuner));
  }
  RETURN_IF_ERROR(cuda::SaveMatmulTable(tuner.table(), options.matmul_table_out));
  Print({{"row", "matmul_table"},
         {"file", options.matmul_table_out},
         {"fingerprint", backend->fingerprint()},
         {"products", tuner.table().size()},
         {"digest", tuner.table().Digest()}});
  return absl::OkStatus();
}

absl::Status Main(const Options& options) {
  if (!options.matmul_table_out.empty()) return WriteTable(options);
  ASSIGN_OR_RETURN(Chosen chosen, Choose(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                   MakeBenchBackend(options.device, {.threads = options.threads,
                                                     .matmul_table = options.matmul_table}));
  return Table(options, std::move(chosen), *backend).Run();
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) {
  stagecoach::Options options;
  stagecoach::FlagParser parser("Speed of every operation of real networks on a device.");
  parser.Text("--device", &options.device, "cuda[:N] or cpu");
  parser.Text("--networks", &options.networks,
              "of gpt2_1.5b, gpt2_124m, resnet_50, tiny_gpt, tiny_resnet");
  parser.Text("--job", &options.job,
              "a job file, whose network, precision and micro-batches are measured instead");
  parser.OneOf("--precision", &options.precision, "of the networks", {"bfloat16", "float32"});
  parser.Number("--seconds", &options.seconds, "of everything, about", 1.0, 3600.0);
  parser.Number("--row-seconds", &options.row_seconds, "of measuring one call, about", 0.001, 60.0);
  parser.Number("--product", &options.product, "side of the large product", 16, 32768);
  parser.Number("--copy-bytes", &options.copy_bytes, "of the large copy", 4096, int64_t{1} << 36);
  parser.Number("--parameters", &options.parameters, "of the updates", 1, int64_t{1} << 34);
  parser.Number("--threads", &options.threads, "of the cpu device", 1, 1024);
  parser.Number("--samples", &options.samples,
                "of a micro-batch; 0: each network's own, or the job's", 0, int64_t{1} << 20);
  parser.Text("--matmul-table", &options.matmul_table,
              "file of the matrix algorithms to take; default: the library's own choice");
  parser.Text("--matmul-table-out", &options.matmul_table_out,
              "times the matrix algorithms of the networks' linear calls on a card and writes this "
              "file, and nothing else; however long it takes");
  parser.Number("--offer-seconds", &options.offer_seconds,
                "of timing one algorithm for --matmul-table-out, about", 0.001, 10.0);
  if (const std::optional<int> code = parser.Parse(argc, argv)) return *code;
  absl::Status status = stagecoach::Main(options);
  if (status.ok() && stagecoach::g_lost) status = absl::DataLossError("rows could not be written");
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpu-operations: %s\n", std::string(status.message()).c_str());
  return 1;
}
