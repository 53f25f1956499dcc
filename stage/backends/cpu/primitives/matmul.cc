#include "stage/backends/cpu/primitives/matmul.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "stage/backends/cpu/primitives/onednn.h"

namespace stagecoach::cpu {
namespace {

using dnnl::memory;
using Desc = memory::desc;

memory::data_type InputType(const MatmulShape& s) {
  return s.bfloat16 ? memory::data_type::bf16 : kF32;
}

Desc PlainB(const MatmulShape& s) {
  return Desc({s.k, s.n}, InputType(s), memory::dims{s.b.row, s.b.column});
}

dnnl::matmul::primitive_desc Describe(const MatmulShape& s) {
  const Desc a({s.m, s.k}, InputType(s), memory::dims{s.a.row, s.a.column});
  const Desc b = s.packed ? Desc({s.k, s.n}, InputType(s), memory::format_tag::any) : PlainB(s);
  const Desc c({s.m, s.n}, kF32, memory::dims{s.c_row, 1});
  const Desc bias({1, s.n}, kF32, memory::dims{s.n, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops post_ops;
    post_ops.append_sum(1.0f);
    attributes.set_post_ops(post_ops);
  }
  const auto desc = s.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  return dnnl::matmul::primitive_desc(desc, attributes, Engine());
}

}  // namespace

struct Matmul::State {
  MatmulShape shape;
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  dnnl::reorder pack;
  Desc a, b, bias, c, scratch, plain_b;

  explicit State(const MatmulShape& s)
      : shape(s),
        description(Describe(s)),
        primitive(description),
        a(description.src_desc()),
        b(description.weights_desc()),
        bias({1, s.n}, kF32, memory::dims{s.n, 1}),
        c(description.dst_desc()),
        scratch(description.scratchpad_desc()),
        plain_b(PlainB(s)) {
    if (!s.packed) return;
    dnnl::primitive_attr attributes;
    pack = dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), plain_b, Engine(), b, attributes));
  }
};

Matmul::Matmul(const MatmulShape& shape) : state_(std::make_unique<State>(shape)) {}
Matmul::~Matmul() = default;

int64_t Matmul::scratch_bytes() const { return static_cast<int64_t>(state_->scratch.get_size()); }
int64_t Matmul::packed_bytes() const { return static_cast<int64_t>(state_->b.get_size()); }
bool Matmul::packed() const { return state_->shape.packed; }

void Matmul::Pack(const void* b, void* packed) const {
  CHECK(state_->shape.packed) << "this product reads its matrix as it stands";
  memory source = View(state_->plain_b, b), target = View(state_->b, packed);
  state_->pack.execute(Stream(), source, target);
}

void Matmul::Execute(const void* a, const void* b, const float* bias, float* c,
                     void* scratch) const {
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, View(state_->a, a)},
                                               {DNNL_ARG_WEIGHTS, View(state_->b, b)},
                                               {DNNL_ARG_DST, View(state_->c, c)}};
  if (state_->shape.bias) arguments.emplace(DNNL_ARG_BIAS, View(state_->bias, bias));
  if (scratch_bytes() > 0) {
    arguments.emplace(DNNL_ARG_SCRATCHPAD, View(state_->scratch, scratch));
  }
  state_->primitive.execute(Stream(), arguments);
}

bool Matmul::ReadsOrderOf(const Matmul& other) const {
  return state_->shape.packed && other.state_->shape.packed && state_->b == other.state_->b;
}

const Matmul& MatmulCache::Get(const MatmulShape& shape) {
  const auto found = primitives_.find(shape);
  if (found != primitives_.end()) return *found->second;
  auto made = std::make_unique<Matmul>(shape);
  const auto like = std::find_if(primitives_.begin(), primitives_.end(), [&](const auto& known) {
    return made->ReadsOrderOf(*known.second);
  });
  made->packed_order_ = like == primitives_.end() ? ++orders_ : like->second->packed_order_;
  return *primitives_.emplace(shape, std::move(made)).first->second;
}

bool OneDnnHasBfloat16() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
}

bool OneDnnHasAvx512() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
    case dnnl::cpu_isa::avx:
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni:
      return false;
    default:
      return true;
  }
}

std::string OneDnnFingerprint() {
  const char* isa = "other";
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      isa = "sse41";
      break;
    case dnnl::cpu_isa::avx:
      isa = "avx";
      break;
    case dnnl::cpu_isa::avx2:
      isa = "avx2";
      break;
    case dnnl::cpu_isa::avx2_vnni:
      isa = "avx2_vnni";
      break;
    case dnnl::cpu_isa::avx512_mic:
      isa = "avx512_mic";
      break;
    case dnnl::cpu_isa::avx512_mic_4ops:
      isa = "avx512_mic_4ops";
      break;
    case dnnl::cpu_isa::avx512_core:
      isa = "avx512_core";
      break;
    case dnnl::cpu_isa::avx512_core_vnni:
      isa = "avx512_core_vnni";
      break;
    case dnnl::cpu_isa::avx512_core_bf16:
      isa = "avx512_core_bf16";
      break;
    case dnnl::cpu_isa::avx512_core_amx:
      isa = "avx512_core_amx";
      break;
    case dnnl::cpu_isa::all:
      isa = "none";
      break;
    default:
      break;
  }
  const dnnl_version_t* version = dnnl_version();
  return absl::StrCat("oneDNN ", version->major, ".", version->minor, ".", version->patch, " ",
                      isa);
}

}  // namespace stagecoach::cpu
