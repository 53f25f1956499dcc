// The window of a pool from its attributes and types.
#ifndef STAGECOACH_STAGE_BACKENDS_POOL_SHAPE_H_
#define STAGECOACH_STAGE_BACKENDS_POOL_SHAPE_H_

#include "operations/images/pool.h"
#include "operations/value_type.h"
#include "stage/backends/window_shape.h"

namespace stagecoach {

// `image` is x or dx, `places` y or dy. The call's number of samples is not set here.
inline WindowShape PoolShape(const PoolSteps& steps, const ValueType& image,
                             const ValueType& places) {
  return {0,
          image.shape[0],
          image.shape[1],
          image.shape[2],
          places.shape[0],
          places.shape[1],
          steps.window.height,
          steps.window.width,
          steps.stride.height,
          steps.stride.width,
          steps.padding.height,
          steps.padding.width,
          1,
          1};
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_POOL_SHAPE_H_
