/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes an archive of OTF2 as Score-P does: `otf2_trace FOLDER [threads|strange]`. No MPI is needed.
 *
 * Three ranks on two hosts; the clock ticks each microsecond, from 1000 on. Each rank computes in solve(), which calls
 * MPI. Rank 0 has a thread and a device, which compute. `threads`: its thread sends, too. `strange`: a message on a
 * communicator that nothing defines. */
#include <otf2/otf2.h>
#include <string.h>

enum {
  NONE,
  MAIN,
  SOLVE,
  INIT,
  SPLIT,
  SENDRECV,
  IRECV,
  ISEND,
  TEST,
  WAITALL,
  CANCEL,
  BCAST,
  ALLREDUCE,
  IBARRIER,
  WAIT,
  PUT,
  FINALIZE,
  REGIONS
};
static const char* const names[] = {
    "",          "main",     "solve",       "MPI_Init",   "MPI_Comm_split", "MPI_Sendrecv",  "MPI_Irecv",
    "MPI_Isend", "MPI_Test", "MPI_Waitall", "MPI_Cancel", "MPI_Bcast",      "MPI_Allreduce", "MPI_Ibarrier",
    "MPI_Wait",  "MPI_Put",  "MPI_Finalize"};
enum { FILE_NAME = REGIONS, HOST_A, HOST_B, RANK, WORLD, STRINGS };
enum { COMM_WORLD, COMM_PAIR };
#define RANKS 3

static OTF2_FlushType flush(void* data, OTF2_FileType type, OTF2_LocationRef location, void* caller, bool final) {
  (void)data, (void)type, (void)location, (void)caller, (void) final;
  return OTF2_FLUSH;
}
static const OTF2_FlushCallbacks on_flush = {flush, NULL};

static OTF2_EvtWriter* to;
static uint64_t now;

static void enter(int region) { OTF2_EvtWriter_Enter(to, NULL, now, (OTF2_RegionRef)region); }
static void leave(int region, uint64_t after) {
  now += after;
  OTF2_EvtWriter_Leave(to, NULL, now, (OTF2_RegionRef)region);
}
/* A collective takes 10 us. */
static void meets(int region, OTF2_CollectiveOp op, OTF2_CommRef comm, uint32_t root, uint64_t sent, uint64_t got) {
  enter(region);
  OTF2_EvtWriter_MpiCollectiveBegin(to, NULL, now);
  now += 10;
  if (region == SPLIT) OTF2_EvtWriter_CommCreate(to, NULL, now, COMM_PAIR);
  OTF2_EvtWriter_MpiCollectiveEnd(to, NULL, now, op, comm, root, sent, got);
  leave(region, 0);
}

static void run(uint32_t rank, int strange) {
  const uint32_t right = (rank + 1) % RANKS, left = (rank + 2) % RANKS;
  now = 1000;
  enter(MAIN);
  now += 500;
  enter(INIT); /* what is before its end is not recorded */
  leave(INIT, 100 * (rank + 1));
  now = 2000;
  enter(SOLVE);
  now += 1000;
  enter(SENDRECV);
  OTF2_EvtWriter_MpiSend(to, NULL, now, right, strange ? 77 : COMM_WORLD, 5, 800);
  now += 20;
  OTF2_EvtWriter_MpiRecv(to, NULL, now, left, COMM_WORLD, 5, 800);
  leave(SENDRECV, 0);
  if (rank != 1) meets(SPLIT, OTF2_COLLECTIVE_OP_CREATE_HANDLE, COMM_WORLD, OTF2_COLLECTIVE_ROOT_NONE, 0, 0);
  if (rank == 1) { /* MPI_COMM_NULL */
    enter(SPLIT);
    OTF2_EvtWriter_MpiCollectiveBegin(to, NULL, now);
    OTF2_EvtWriter_MpiCollectiveEnd(to, NULL, now + 10, OTF2_COLLECTIVE_OP_CREATE_HANDLE, COMM_WORLD,
                                    OTF2_COLLECTIVE_ROOT_NONE, 0, 0);
    leave(SPLIT, 10);
  }
  enter(IRECV);
  OTF2_EvtWriter_MpiIrecvRequest(to, NULL, now, 1);
  leave(IRECV, 2);
  enter(IRECV); /* nothing comes */
  OTF2_EvtWriter_MpiIrecvRequest(to, NULL, now, 2);
  leave(IRECV, 2);
  now += rank == 0 ? 3000 : 1000;
  enter(ISEND);
  OTF2_EvtWriter_MpiIsend(to, NULL, now, right, COMM_WORLD, 6, 100, 3);
  leave(ISEND, 2);
  enter(TEST);
  OTF2_EvtWriter_MpiRequestTest(to, NULL, now, 1);
  leave(TEST, 1);
  enter(CANCEL);
  leave(CANCEL, 1);
  enter(WAITALL);
  now += rank == 1 ? 2000 : 10;
  OTF2_EvtWriter_MpiIrecv(to, NULL, now, left, COMM_WORLD, 6, 100, 1);
  OTF2_EvtWriter_MpiRequestCancelled(to, NULL, now, 2);
  OTF2_EvtWriter_MpiIsendComplete(to, NULL, now, 3);
  leave(WAITALL, 0);
  meets(ALLREDUCE, OTF2_COLLECTIVE_OP_ALLREDUCE, COMM_WORLD, OTF2_COLLECTIVE_ROOT_NONE, RANKS * 64, RANKS * 64);
  if (rank != 1) /* rank 2 of the job is rank 1 of the pair, and the root */
    meets(BCAST, OTF2_COLLECTIVE_OP_BCAST, COMM_PAIR, 1, rank == 2 ? 2 * 16 : 0, 16);
  enter(IBARRIER);
  OTF2_EvtWriter_NonBlockingCollectiveRequest(to, NULL, now, 4);
  leave(IBARRIER, 1);
  enter(WAIT);
  now += 10;
  OTF2_EvtWriter_NonBlockingCollectiveComplete(to, NULL, now, OTF2_COLLECTIVE_OP_BARRIER, COMM_WORLD,
                                               OTF2_COLLECTIVE_ROOT_NONE, 0, 0, 4);
  leave(WAIT, 0);
  enter(PUT);
  OTF2_EvtWriter_RmaPut(to, NULL, now, 0, right, 8, 9);
  leave(PUT, 5);
  leave(SOLVE, 100);
  enter(FINALIZE);
  leave(FINALIZE, 300);
  leave(MAIN, 0);
}

static void thread(int sends) {
  now = 2000;
  enter(SOLVE);
  if (sends) OTF2_EvtWriter_MpiSend(to, NULL, now, 1, COMM_WORLD, 5, 8);
  leave(SOLVE, 100);
}

static void define(OTF2_GlobalDefWriter* defs, const uint64_t* events) {
  OTF2_GlobalDefWriter_WriteClockProperties(defs, 1000000, 1000, 20000, 1700000000000000000);
  for (OTF2_StringRef i = 0; i < REGIONS; i++) OTF2_GlobalDefWriter_WriteString(defs, i, names[i]);
  OTF2_GlobalDefWriter_WriteString(defs, FILE_NAME, "solve.c");
  OTF2_GlobalDefWriter_WriteString(defs, HOST_A, "host-a");
  OTF2_GlobalDefWriter_WriteString(defs, HOST_B, "host-b");
  OTF2_GlobalDefWriter_WriteString(defs, RANK, "MPI Rank");
  OTF2_GlobalDefWriter_WriteString(defs, WORLD, "MPI_COMM_WORLD");
  for (OTF2_RegionRef i = MAIN; i < REGIONS; i++)
    OTF2_GlobalDefWriter_WriteRegion(defs, i, i, i, NONE, OTF2_REGION_ROLE_FUNCTION,
                                     i >= INIT ? OTF2_PARADIGM_MPI : OTF2_PARADIGM_COMPILER, OTF2_REGION_FLAG_NONE,
                                     i >= INIT ? NONE : FILE_NAME, i == SOLVE ? 33 : 0, 0);
  for (OTF2_SystemTreeNodeRef i = 0; i < 2; i++)
    OTF2_GlobalDefWriter_WriteSystemTreeNode(defs, i, HOST_A + i, NONE, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
  for (uint64_t i = 0; i < RANKS; i++) {
    OTF2_GlobalDefWriter_WriteLocationGroup(defs, (OTF2_LocationGroupRef)i, RANK, OTF2_LOCATION_GROUP_TYPE_PROCESS,
                                            i == 2 ? 1 : 0, OTF2_UNDEFINED_LOCATION_GROUP);
    OTF2_GlobalDefWriter_WriteLocation(defs, 10 * i, RANK, OTF2_LOCATION_TYPE_CPU_THREAD, events[i],
                                       (OTF2_LocationGroupRef)i);
  }
  OTF2_GlobalDefWriter_WriteLocation(defs, 1, RANK, OTF2_LOCATION_TYPE_CPU_THREAD, events[RANKS], 0);
  const uint64_t ranks[RANKS] = {0, 10, 20}, all[RANKS] = {0, 1, 2}, pair[] = {0, 2};
  OTF2_GlobalDefWriter_WriteGroup(defs, 0, NONE, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                  OTF2_GROUP_FLAG_NONE, RANKS, ranks);
  OTF2_GlobalDefWriter_WriteGroup(defs, 1, NONE, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                  RANKS, all);
  OTF2_GlobalDefWriter_WriteGroup(defs, 2, NONE, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, 2,
                                  pair);
  OTF2_GlobalDefWriter_WriteComm(defs, COMM_WORLD, WORLD, 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE);
  OTF2_GlobalDefWriter_WriteComm(defs, COMM_PAIR, NONE, 2, COMM_WORLD, OTF2_COMM_FLAG_NONE);
}

int main(int argc, char** argv) {
  const char* const how = argc > 2 ? argv[2] : "";
  OTF2_Archive* const archive = OTF2_Archive_Open(argv[1], "traces", OTF2_FILEMODE_WRITE, 1 << 20, 4 << 20,
                                                  OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  if (!archive) return 1;
  OTF2_Archive_SetCreator(archive, "Score-P 8.4");
  OTF2_Archive_SetFlushCallbacks(archive, &on_flush, NULL);
  OTF2_Archive_SetSerialCollectiveCallbacks(archive);
  uint64_t events[RANKS + 1];
  OTF2_Archive_OpenEvtFiles(archive);
  for (uint64_t i = 0; i <= RANKS; i++) {
    to = OTF2_Archive_GetEvtWriter(archive, i < RANKS ? 10 * i : 1);
    if (i < RANKS)
      run((uint32_t)i, !strcmp(how, "strange"));
    else
      thread(!strcmp(how, "threads"));
    OTF2_EvtWriter_GetNumberOfEvents(to, &events[i]);
    OTF2_Archive_CloseEvtWriter(archive, to);
  }
  OTF2_Archive_CloseEvtFiles(archive);
  OTF2_Archive_OpenDefFiles(archive);
  for (uint64_t i = 0; i <= RANKS; i++)
    OTF2_Archive_CloseDefWriter(archive, OTF2_Archive_GetDefWriter(archive, i < RANKS ? 10 * i : 1));
  OTF2_Archive_CloseDefFiles(archive);
  OTF2_GlobalDefWriter* const defs = OTF2_Archive_GetGlobalDefWriter(archive);
  define(defs, events);
  OTF2_Archive_CloseGlobalDefWriter(archive, defs);
  return OTF2_Archive_Close(archive) != OTF2_SUCCESS;
}
