// Parts that no data set has. A part of a set has two names at least, its own and one in the set.
// The system counts a file's names, so nothing is kept about them besides. These calls go past
// FileSystem: a crash between them leaves a part more, and the next sweep finds it.
// Ownership: none.  Threads: any.  Units: seconds since 1970.
// Errors:    none: a part that cannot be removed stays for the next sweep.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_PART_SWEEP_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_PART_SWEEP_H_

#include <cstdint>
#include <string>
#include <vector>

namespace stagecoach {

// Removes those of these parts that have no other name; returns their bytes.
int64_t FreePartFiles(const std::string& folder, const std::vector<std::string>& digests);
// Removes the parts in the folders of all owners that have no other name, or are being uploaded, and
// did not change since then; returns their bytes.
int64_t SweepPartFiles(const std::string& parts, double unchanged_since_seconds);
// A client was told that this part is here: for sweeps it has changed now.
void TouchPartFile(const std::string& path);
// Whether both are there and are not one file.
bool AreTwoFiles(const std::string& path, const std::string& other);
// Bytes of it that were uploaded; 0: none.
int64_t UploadedPartBytes(const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_PART_SWEEP_H_
