// SPDX-License-Identifier: BSD-3-Clause
// A plugin of Slurm (SPANK) that gives srun the option --stretto: the ranks get the library.
//
//   srun --stretto ...         the ranks run with Stretto
//   srun --stretto=stats ...   and print at the end what ran
//   srun --stretto=report ...  and srun writes a report: stretto-JOB.STEP.html
//
// A line in plugstack.conf on all nodes, and on those from which users start jobs:
//
//   optional /opt/stretto/lib/stretto/native/stretto-spank.so stretto=/opt/stretto/bin/stretto
//
// srun asks the command `stretto` which library fits the program, and tells the ranks by variables
// whose names begin with SLURM_, because these pass --export=NONE. So neither srun nor slurmstepd
// gets the library. When the last rank of a node has ended, slurmstepd would kill what is left of
// the step. The plugin first waits for the program that writes the statistics of stopped jobs
// (tools/keeper), and without one it does not wait.
//
// It fails no job: what goes wrong is a line on srun's standard error, but for a wrong --stretto=.
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <slurm/spank.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// NOLINTBEGIN: Slurm's header has these names and forms
SPANK_PLUGIN(stretto, 1);
// NOLINTEND

#define LIBRARY "SLURM_STRETTO_LIBRARY"
#define STATISTICS "SLURM_STRETTO_STATS"

enum { kWordBytes = 2 * PATH_MAX, kKeepersMs = 10000, kLookEveryMs = 20 };
enum Wanted { kNothing, kRun, kStats, kReport };

static enum Wanted wanted = kNothing;
static char command[PATH_MAX] = "stretto";
static char report_from[PATH_MAX] = "", report_to[PATH_MAX] = "";
static uint32_t tasks_ended = 0;

static int on_option(int value, const char* text, int remote) {
  (void)value;
  (void)remote;
  if (text == NULL || *text == 0) {
    wanted = kRun;
  } else if (strcmp(text, "stats") == 0) {
    wanted = kStats;
  } else if (strcmp(text, "report") == 0) {
    wanted = kReport;
  } else {
    slurm_error("--stretto=%s: expected --stretto, --stretto=stats or --stretto=report", text);
    return ESPANK_BAD_ARG;
  }
  return ESPANK_SUCCESS;
}

static struct spank_option option = {
    "stretto", "[stats|report]", "run the ranks with Stretto; print statistics, or write a report", 2, 0, on_option,
};

// ---- In srun ----

// Starts the command without Stretto in it. Its output, up to the end of its last line, goes to
// `out`, if there is one. Returns its status; -1: it was not started, or was killed.
static int run_command(char* const words[], char* out, size_t capacity) {
  int ends[2] = {-1, -1};
  if (out != NULL && pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    if (out != NULL) dup2(ends[1], 1);
    unsetenv("LD_PRELOAD");
    execvp(words[0], words);
    _exit(127);
  }
  if (out != NULL) {
    size_t length = 0;
    close(ends[1]);
    for (;;) {
      const ssize_t got = length + 1 < capacity ? read(ends[0], out + length, capacity - 1 - length) : 0;
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      length += (size_t)got;
    }
    close(ends[0]);
    while (length > 0 && isspace((unsigned char)out[length - 1])) --length;
    out[length] = 0;
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void choose_files(spank_t spank) {
  uint32_t job = 0, step = 0;
  char folder[PATH_MAX];
  if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS || getcwd(folder, sizeof folder) == NULL ||
      snprintf(report_from, sizeof report_from, "%s/stretto-%u.%u.json", folder, job, step) >=
          (int)sizeof report_from ||
      snprintf(report_to, sizeof report_to, "%s/stretto-%u.%u.html", folder, job, step) >= (int)sizeof report_to) {
    slurm_error("--stretto=report: no name for a report can be found");
    report_from[0] = 0;
  }
}

// Options of plugstack.conf are words.
int slurm_spank_init(spank_t spank, int count, char** words) {
  for (int i = 0; i < count; ++i) {
    if (strncmp(words[i], "stretto=", 8) == 0) snprintf(command, sizeof command, "%s", words[i] + 8);
  }
  const spank_context_t context = spank_context();
  return context == S_CTX_LOCAL || context == S_CTX_REMOTE ? (int)spank_option_register(spank, &option)
                                                           : ESPANK_SUCCESS;
}

int slurm_spank_local_user_init(spank_t spank, int count, char** words) {
  (void)count;
  (void)words;
  if (wanted == kNothing) return ESPANK_SUCCESS;
  int argc = 0;
  char** argv = NULL;
  char library[kWordBytes], statistics[kWordBytes];
  if (spank_get_item(spank, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1) return ESPANK_SUCCESS;
  char** const line = calloc((size_t)argc + 5, sizeof *line);
  if (line == NULL) return ESPANK_SUCCESS;
  line[0] = command;
  line[1] = "env";
  line[2] = "--library";
  line[3] = "--";
  memcpy(line + 4, argv, (size_t)argc * sizeof *argv);
  const int status = run_command(line, library, sizeof library);
  free(line);
  if (status != 0 || *library != '/') {
    slurm_error("--stretto: the job runs without Stretto: `%s env --library -- %s` names no library", command, argv[0]);
    wanted = kNothing;
    return ESPANK_SUCCESS;
  }
  setenv(LIBRARY, library, 1);
  if (wanted == kStats) setenv(STATISTICS, "text", 1);
  if (wanted == kReport) choose_files(spank);
  if (report_from[0] != 0 && snprintf(statistics, sizeof statistics, "json:%s", report_from) < (int)sizeof statistics)
    setenv(STATISTICS, statistics, 1);
  return ESPANK_SUCCESS;
}

static void write_report(void) {
  char* const line[] = {command, "report", report_from, "-o", report_to, NULL};
  if (access(report_from, R_OK) != 0) {
    slurm_error("--stretto=report: no report: the program did not come to the end of MPI_Init with Stretto");
  } else if (run_command(line, NULL, 0) == 0) {
    unlink(report_from);
  } else {
    slurm_error("--stretto=report: the statistics are in %s", report_from);
  }
}

int slurm_spank_exit(spank_t spank, int count, char** words) {
  (void)spank;
  (void)count;
  (void)words;
  if (spank_context() == S_CTX_LOCAL && report_from[0] != 0) write_report();
  return ESPANK_SUCCESS;
}

// ---- In slurmstepd ----

int slurm_spank_user_init(spank_t spank, int count, char** words) {
  (void)count;
  (void)words;
  char library[kWordBytes], before[kWordBytes], both[2 * kWordBytes], statistics[kWordBytes];
  if (wanted == kNothing || spank_getenv(spank, LIBRARY, library, sizeof library) != ESPANK_SUCCESS)
    return ESPANK_SUCCESS;
  // Other tools see every call before Stretto serves it.
  const int has_others = spank_getenv(spank, "LD_PRELOAD", before, sizeof before) == ESPANK_SUCCESS && *before != 0;
  snprintf(both, sizeof both, "%s%s%s", has_others ? before : "", has_others ? ":" : "", library);
  (void)spank_setenv(spank, "LD_PRELOAD", both, 1);
  if (spank_getenv(spank, STATISTICS, statistics, sizeof statistics) == ESPANK_SUCCESS)
    (void)spank_setenv(spank, "STRETTO_STATS", statistics, 1);
  (void)spank_unsetenv(spank, LIBRARY);
  (void)spank_unsetenv(spank, STATISTICS);
  return ESPANK_SUCCESS;
}

static size_t read_of(const char* process, const char* name, char* text, size_t capacity) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%.20s/%s", process, name);
  FILE* const file = fopen(path, "r");
  const size_t length = file != NULL ? fread(text, 1, capacity - 1, file) : 0;
  text[length] = 0;
  if (file != NULL) fclose(file);
  return length;
}

static int has_variable(const char* block, size_t bytes, const char* variable) {
  for (const char* each = block; each < block + bytes; each += strlen(each) + 1) {
    if (strcmp(each, variable) == 0) return 1;
  }
  return 0;
}

// Whether the step's keeper runs on this node.
static int keeper_runs(uint32_t job, uint32_t step) {
  enum { kBlockBytes = 1 << 20 };
  char of_job[32], of_step[32], name[32];
  char* const block = malloc(kBlockBytes);
  DIR* const processes = opendir("/proc");
  int found = 0;
  snprintf(of_job, sizeof of_job, "SLURM_JOB_ID=%u", job);
  snprintf(of_step, sizeof of_step, "SLURM_STEP_ID=%u", step);
  for (const struct dirent* entry; block != NULL && processes != NULL && !found && (entry = readdir(processes));) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    (void)read_of(entry->d_name, "comm", name, sizeof name);
    if (strcmp(name, "stretto-keeper\n") != 0) continue;
    const size_t bytes = read_of(entry->d_name, "environ", block, kBlockBytes);
    found = has_variable(block, bytes, of_job) && has_variable(block, bytes, of_step);
  }
  if (processes != NULL) closedir(processes);
  free(block);
  return found;
}

int slurm_spank_task_exit(spank_t spank, int count, char** words) {
  (void)count;
  (void)words;
  uint32_t tasks = 0, job = 0, step = 0;
  if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS || ++tasks_ended < tasks ||
      spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
    return ESPANK_SUCCESS;
  const struct timespec pause = {0, kLookEveryMs * 1000000L};
  for (int ms = 0; ms < kKeepersMs && keeper_runs(job, step); ms += kLookEveryMs) nanosleep(&pause, NULL);
  return ESPANK_SUCCESS;
}
