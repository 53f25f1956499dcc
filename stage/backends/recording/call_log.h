// CallLog: the stable text of a stage's calls of its back end, one line an event:
//
//   # F1
//   alloc F1.t3 1024
//   Dropout x=F1.t2:F32[16,16] y=F1.t3:F32[16,16] rate=0.1
//     stream=seed5.step0.micro_batch1.layer2.op1 free F1.t2
//
// A buffer's name has three parts: the section that it was allocated in, a letter for its kind, and
// a number. Letters are p parameters, g gradients, o optimizer, t activations, w workspace. Numbers
// follow the order of allocations of that kind in the section. So names stay when another section
// changes. Name gives a buffer another name. A view is the name of the whole and the bytes in front
// of it: L0.w1+8. A buffer of another allocator (a neighbour's, over an in-process link) has the
// letter r. It is named when a call meets it; its release is seen at the next event. Frees with
// nothing in between are one line, in the order of the allocations: the order in which a stage
// releases them changes nothing. Optional tensors that are empty are left out. The text has no
// values of tensors: it is the same on every machine.
// Ownership: buffers share it, so they may outlive back end and allocator.
// Threads:   one.
// Units:     bytes, as asked for.
#ifndef STAGECOACH_STAGE_BACKENDS_RECORDING_CALL_LOG_H_
#define STAGECOACH_STAGE_BACKENDS_RECORDING_CALL_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/numbers/random.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

class CallLog {
 public:
  using Value = std::variant<Tensor, float, double, int64_t, RandomStream>;
  struct Field {
    const char* name;
    Value value;
  };

  // Adds an operation and its arguments. `indent`: if one call takes several sets of arguments, the
  // line of one set.
  void Call(const std::string& operation, const std::vector<Field>& fields, bool indent = false);
  // Begins a section of that name, "F1"; "" is none.
  void Begin(const std::string& section);
  // Gives the buffer a new name, without blanks, and adds a line about it.
  void Name(const Tensor& tensor, const std::string& name);
  // All lines since the last Take.
  std::string Take();

  // `bytes`: as asked for; the buffer may have more.
  void Allocated(const Buffer& buffer, int64_t bytes, MemoryKind kind);
  void Freed(const Buffer& buffer);

 private:
  struct Label {
    std::string name;
    int order = 0;  // among all buffers
  };
  struct Foreign {
    std::weak_ptr<Buffer> buffer;
    Label label;
  };

  void Add(const std::string& line);
  Label NewLabel(char letter);
  void NoteForeignFrees();
  void AddFrees();
  std::string NameOf(const Tensor& tensor);
  std::string Text(const Value& value);

  std::vector<std::string> lines_;
  std::map<const Buffer*, Label> own_;
  std::map<const std::byte*, const Buffer*> places_;  // own buffers that are not empty
  std::map<const Buffer*, Foreign> foreign_;
  std::vector<Label> frees_;  // since the last line
  std::string section_;
  std::map<std::string, int> numbers_;  // the last number, by the part of the name before it
  int buffers_ = 0;                     // number of buffers that got a name
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_RECORDING_CALL_LOG_H_
