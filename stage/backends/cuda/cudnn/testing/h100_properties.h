// A card's properties, so that tests make plans without a card.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_H100_PROPERTIES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_H100_PROPERTIES_H_

namespace stagecoach::cudnn {

// An H100 of 80 GB in the text form of cuDNN 9.19, put together from the card's public figures.
inline constexpr char kH100[] =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
    R"("regsPerBlock":65536,"multiProcessorCount":132,"warpSize":32,)"
    R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
    R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
    R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
    R"("supportCoopLaunch":1,"smClockRateKHz":1980000,"memClockRateKHz":2619000,)"
    R"("l2CacheSize":52428800,"deviceName":"NVIDIA H100 80GB HBM3","deviceVer":900,)"
    R"("driverVer":13000,"cudaDeviceId":0,"totalGlobalMem":85029158912})";

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_TESTING_H100_PROPERTIES_H_
