// AnyFile: roots that allow any file, for tests of something else.
#ifndef STAGECOACH_STAGE_FILES_ANY_FILE_TESTING_H_
#define STAGECOACH_STAGE_FILES_ANY_FILE_TESTING_H_

#include "stage/files/data_roots.h"

namespace stagecoach {

inline DataRoots& AnyFile() {
  static DataRoots* const roots = DataRoots::Everything().release();
  return *roots;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_FILES_ANY_FILE_TESTING_H_
