// libjpeg-turbo's headers, in the order that they need.
#ifndef STAGECOACH_STAGE_PICTURES_LIBJPEG_H_
#define STAGECOACH_STAGE_PICTURES_LIBJPEG_H_

// jpeglib.h uses size_t and FILE and includes neither; jerror.h uses jpeglib.h.
// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#ifndef LIBJPEG_TURBO_VERSION_NUMBER
#error \
    "pictures are decoded by libjpeg-turbo: another libjpeg gives other bytes; install libjpeg-turbo's headers"
#endif

#endif  // STAGECOACH_STAGE_PICTURES_LIBJPEG_H_
