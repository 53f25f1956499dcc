#include "stage/backends/cuda/cudnn/engine_notes.h"

namespace stagecoach::cudnn {

std::vector<EngineNote> BarredNotes(Precision precision) {
  std::vector<EngineNote> barred = {EngineNote::kNondeterministic,
                                    EngineNote::kReducedPrecisionSums, EngineNote::kFourier,
                                    EngineNote::kWinograd};
  switch (precision) {
    case Precision::kFloat32:
      barred.push_back(EngineNote::kTensorCores);
      barred.push_back(EngineNote::kDownConvertedInputs);
      break;
    case Precision::kTensorFloat32:
      barred.push_back(EngineNote::kDownConvertedInputs);
      break;
    case Precision::kBfloat16:
      break;
  }
  return barred;
}

}  // namespace stagecoach::cudnn
