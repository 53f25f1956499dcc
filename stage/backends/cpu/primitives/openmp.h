// The two functions of OpenMP that we call, declared as its specification has them.
//
// clang's omp.h belongs to another runtime than that of oneDNN, which is gcc's: two in one process do not share their
// number of threads. So no compiler's header is included, and libgomp is linked.
// Threads:   the number of threads is the calling thread's.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_OPENMP_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_OPENMP_H_

extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_OPENMP_H_
