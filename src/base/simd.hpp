#pragma once

// A plain loop compiled for several instruction sets; the machine's best is chosen when the program
// starts. Off under sanitizers, whose start-up does not survive the choice (ifunc resolvers run
// before it).
#if defined(__x86_64__) && !defined(SPEEDO_SANITIZED)
#define SPEEDO_MULTIVERSION __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define SPEEDO_MULTIVERSION
#endif
