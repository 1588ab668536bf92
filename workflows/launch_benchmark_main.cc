#include "workflows/commands/launch_benchmark.h"

int main(int argc, char** argv) { return requant::LaunchBenchmark(argc, argv); }
