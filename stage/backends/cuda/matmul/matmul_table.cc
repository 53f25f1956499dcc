#include "stage/backends/cuda/matmul/matmul_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/errors/suggest.h"
#include "base/files/hash.h"

namespace stagecoach::cuda {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFormat = 1;
constexpr int64_t kMostExtent = int64_t{1} << 40;

template <typename T>
struct NameOfValue {
  T value;
  const char* name;
};

constexpr std::array<NameOfValue<MatmulKind>, 3> kKinds = {
    {{MatmulKind::kForward, "forward"},
     {MatmulKind::kBackwardInput, "backward_input"},
     {MatmulKind::kBackwardWeight, "backward_weight"}}};
constexpr std::array<NameOfValue<MatmulType>, 3> kTypes = {
    {{MatmulType::kFloat32, "float32"},
     {MatmulType::kTensorFloat32, "tensorfloat32"},
     {MatmulType::kBfloat16, "bfloat16"}}};
const auto& Epilogues() {
  using E = MatmulEpilogue;
  static const auto names = [] {
    std::array<NameOfValue<E>, 5> all{};
    size_t next = 0;
    for (const E e : {E::kNone, E::kBias, E::kGelu, E::kBiasGelu, E::kGeluGradient}) {
      all[next++] = {e, EpilogueName(e)};
    }
    return all;
  }();
  return names;
}

template <typename Names, typename T>
const char* NameIn(const Names& names, T value) {
  for (const auto& one : names) {
    if (one.value == value) return one.name;
  }
  return "unknown";
}

struct ListedProduct {
  MatmulShape shape;
  MatmulChoice choice;
};

// The fields of a product in their order, for the writer and the reader.
template <typename Visitor>
void Visit(Visitor& visit, ListedProduct& p) {
  visit.Name("kind", kKinds, p.shape.kind);
  visit.Number("rows", p.shape.rows, 1, kMostExtent);
  visit.Number("in", p.shape.in, 1, kMostExtent);
  visit.Number("out", p.shape.out, 1, kMostExtent);
  visit.Name("type", kTypes, p.shape.type);
  visit.Name("epilogue", Epilogues(), p.shape.epilogue);
  visit.Flag("residual", p.shape.residual);
  visit.Number("out_stride", p.shape.out_stride, 0, kMostExtent);
  visit.Name("fused", Epilogues(), p.choice.fused);
  MatmulAlgorithm& a = p.choice.algorithm;
  visit.Number("algorithm", a.id);
  visit.Number("tile", a.tile);
  visit.Number("stages", a.stages);
  visit.Number("split_k", a.split_k);
  visit.Number("reduction_scheme", a.reduction_scheme);
  visit.Number("swizzle", a.swizzle);
  visit.Number("custom_option", a.custom_option);
  visit.Number("inner_shape", a.inner_shape);
  visit.Number("cluster", a.cluster);
}

template <typename Visitor>
void Visit(Visitor& visit, MatmulTableHeader& header) {
  visit.Text("card", header.card);
  visit.Number("compute_capability", header.compute_capability, 1);
  visit.Number("cublaslt", header.library_version, 1);
  visit.Number("workspace_bytes", header.workspace_bytes, 0);
}

// "a": 1, "b": "x"
class TableWriter {
 public:
  template <typename T>
  void Number(const char* name, const T& value, int64_t = 0, int64_t = 0) {
    Append(name, absl::StrCat(value));
  }
  template <typename Names, typename T>
  void Name(const char* name, const Names& names, const T& value) {
    Append(name, absl::StrCat("\"", NameIn(names, value), "\""));
  }
  void Flag(const char* name, const bool& value) { Append(name, value ? "true" : "false"); }
  void Text(const char* name, const std::string& value) {
    Append(name, Json(value).dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  const std::string& text() const { return text_; }

 private:
  void Append(const char* name, const std::string& value) {
    absl::StrAppend(&text_, text_.empty() ? "" : ", ", "\"", name, "\": ", value);
  }
  std::string text_;
};

// Shown in errors: a file may hold anything.
std::string Shown(const Json& value) {
  constexpr size_t kMost = 60;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

// The fields of one object. The first thing that is wrong is kept; later reads change nothing.
class TableReader {
 public:
  TableReader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) Refuse("", Shown(object), "must be an object");
  }

  template <typename T>
  void Number(const char* name, T& value, int64_t low = std::numeric_limits<T>::min(),
              int64_t high = std::numeric_limits<T>::max()) {
    const Json* const found = Find(name);
    if (found == nullptr) return;
    // Larger than int64_t is a number without sign that comes out negative.
    const bool whole = found->is_number_integer();
    const bool large = found->is_number_unsigned() &&
                       found->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
    const int64_t number = whole && !large ? found->get<int64_t>() : 0;
    if (!whole || large || number < low || number > high) {
      return Refuse(name, Shown(*found),
                    low == high ? absl::StrCat("must be ", low)
                                : absl::StrCat("must be a whole number from ", low, " to ", high));
    }
    value = static_cast<T>(number);
  }
  template <typename Names, typename T>
  void Name(const char* name, const Names& names, T& value) {
    const Json* const found = Find(name);
    if (found == nullptr) return;
    for (const auto& one : names) {
      if (found->is_string() && found->get_ref<const std::string&>() == one.name) {
        value = one.value;
        return;
      }
    }
    Refuse(name, Shown(*found),
           absl::StrCat("must be one of ",
                        absl::StrJoin(names, ", ", [](std::string* out, const auto& one) {
                          *out += one.name;
                        })));
  }
  void Flag(const char* name, bool& value) {
    const Json* const found = Find(name);
    if (found == nullptr) return;
    if (!found->is_boolean()) return Refuse(name, Shown(*found), "must be true or false");
    value = found->get<bool>();
  }
  void Text(const char* name, std::string& value) {
    const Json* const found = Find(name);
    if (found == nullptr) return;
    if (!found->is_string() || found->get_ref<const std::string&>().empty()) {
      return Refuse(name, Shown(*found), "must be a text");
    }
    value = found->get<std::string>();
  }
  const Json* Find(const char* name) {
    known_.emplace_back(name);
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    Refuse(name, "missing", kMakeMatmulTable);
    return nullptr;
  }
  void Refuse(const std::string& name, const std::string& value, const std::string& remedy) {
    if (!status_.ok()) return;
    const char* const dot = path_.empty() || name.empty() ? "" : ".";
    status_ = FieldError(absl::StrCat(path_, dot, name), value, remedy);
  }
  // After all fields: whoever wrote another one meant something by it.
  absl::Status Finish() {
    if (!status_.ok()) return status_;
    for (const auto& [name, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      Refuse(Shown(Json(name)), "no such field",
             absl::StrCat("leave it out", DidYouMean(name, known_)));
    }
    return status_;
  }

 private:
  const Json& object_;
  const std::string path_;
  std::vector<std::string> known_;
  absl::Status status_;
};

bool BelongsTo(MatmulEpilogue epilogue, MatmulKind kind) {
  if (epilogue == MatmulEpilogue::kNone) return true;
  if (epilogue == MatmulEpilogue::kGeluGradient) return kind == MatmulKind::kBackwardInput;
  return kind == MatmulKind::kForward;
}

// What no product is, and what would not be the same from run to run.
void CheckTogether(const ListedProduct& p, TableReader& reader) {
  const auto& [shape, choice] = p;
  if (!BelongsTo(shape.epilogue, shape.kind)) {
    return reader.Refuse(
        "epilogue", EpilogueName(shape.epilogue),
        absl::StrCat("a product of kind ", NameIn(kKinds, shape.kind), " has none of it"));
  }
  if (shape.residual && (shape.kind != MatmulKind::kForward || HasAux(shape.epilogue))) {
    return reader.Refuse("residual", "true", "only a forward product without a GELU has one");
  }
  const bool plain = shape.epilogue == MatmulEpilogue::kNone && !shape.residual;
  if (shape.out_stride != 0 && (shape.out_stride < shape.out || !plain)) {
    return reader.Refuse("out_stride", absl::StrCat(shape.out_stride),
                         "must be 0, or at least `out` without an epilogue or a residual");
  }
  const std::vector<MatmulEpilogue> epilogues = EpiloguesToTry(shape);
  if (std::find(epilogues.begin(), epilogues.end(), choice.fused) == epilogues.end()) {
    return reader.Refuse(
        "fused", EpilogueName(choice.fused),
        absl::StrCat("must be one of ",
                     absl::StrJoin(epilogues, ", ", [](std::string* out, MatmulEpilogue e) {
                       *out += EpilogueName(e);
                     })));
  }
  if (!HasFixedOrder(choice.algorithm)) {
    reader.Refuse(
        "reduction_scheme", absl::StrCat(choice.algorithm.reduction_scheme),
        absl::StrCat("with a split_k of ", choice.algorithm.split_k, " it must be ",
                     kReductionComputeType, ": the others add in the order in which blocks come"));
  }
}

absl::StatusOr<ListedProduct> ReadListed(const Json& object, const std::string& path) {
  ListedProduct product;
  TableReader reader(object, path);
  Visit(reader, product);
  RETURN_IF_ERROR(reader.Finish());
  CheckTogether(product, reader);
  RETURN_IF_ERROR(reader.Finish());
  return product;
}

// Of two fields of one name the parser would keep the last without a word.
absl::StatusOr<Json> ParseJson(const std::string& text) {
  std::vector<std::set<std::string>> open;
  std::string twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key &&
        !open.back().insert(parsed.get<std::string>()).second) {
      twice = Shown(parsed);
    }
    return true;
  };
  Json json = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return FieldError("the table", "no JSON", kMakeMatmulTable);
  }
  if (!twice.empty()) return FieldError(twice, "stands twice in one object", "leave one of them");
  return json;
}

}  // namespace

std::string ShapeText(const MatmulShape& shape) {
  std::string text = absl::StrCat(NameIn(kKinds, shape.kind), " of ", shape.rows, " x ", shape.in,
                                  " by ", shape.out, ", ", NameIn(kTypes, shape.type));
  if (shape.epilogue != MatmulEpilogue::kNone) {
    absl::StrAppend(&text, ", ", EpilogueName(shape.epilogue));
  }
  if (shape.residual) text += " and a residual";
  if (shape.out_stride != 0) absl::StrAppend(&text, ", rows ", shape.out_stride, " apart");
  return text;
}

absl::StatusOr<MatmulTable> MatmulTable::Parse(const std::string& text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  TableReader reader(json, "");
  int64_t format = 0;
  reader.Number("matmul_table", format, kFormat, kFormat);
  MatmulTableHeader header;
  Visit(reader, header);
  const Json* const products = reader.Find("products");
  if (products != nullptr && !products->is_array()) {
    reader.Refuse("products", Shown(*products), "must be a list");
  }
  RETURN_IF_ERROR(reader.Finish());
  MatmulTable table(std::move(header));
  for (size_t i = 0; i < products->size(); ++i) {
    const std::string path = absl::StrCat("products[", i, "]");
    ASSIGN_OR_RETURN(const ListedProduct product, ReadListed((*products)[i], path));
    if (!table.Add(product.shape, product.choice)) {
      return FieldError(path, ShapeText(product.shape),
                        "it has a choice already: leave one of them");
    }
  }
  return table;
}

bool MatmulTable::Add(const MatmulShape& shape, const MatmulChoice& choice) {
  return choices_.emplace(shape, choice).second;
}

const MatmulChoice* MatmulTable::Find(const MatmulShape& shape) const {
  const auto found = choices_.find(shape);
  return found == choices_.end() ? nullptr : &found->second;
}

std::string MatmulTable::Format() const {
  TableWriter head;
  head.Number("matmul_table", kFormat);
  MatmulTableHeader header = header_;
  Visit(head, header);
  std::string text = absl::StrCat("{", head.text(), ", \"products\": [");
  const char* before = "\n";
  for (const auto& [shape, choice] : choices_) {
    TableWriter line;
    ListedProduct product{shape, choice};
    Visit(line, product);
    absl::StrAppend(&text, std::exchange(before, ",\n"), "{", line.text(), "}");
  }
  absl::StrAppend(&text, "\n]}\n");
  return text;
}

std::string MatmulTable::Digest() const { return Sha256Hex(Format()); }

absl::Status MatmulTable::CheckFits(const MatmulTableHeader& here) const {
  if (header_ == here) return absl::OkStatus();
  const auto text = [](const MatmulTableHeader& h) {
    return absl::StrCat(h.card, " (compute capability ", h.compute_capability / 10, ".",
                        h.compute_capability % 10, "), cuBLASLt ", h.library_version,
                        ", a workspace of ", h.workspace_bytes, " bytes");
  };
  return absl::FailedPreconditionError(absl::StrCat("the table is of ", text(header_), "; here is ",
                                                    text(here), "; ", kMakeMatmulTable));
}

}  // namespace stagecoach::cuda
