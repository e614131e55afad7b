// answer SLOTS JOBS
//
// HTCondor's side of `make bench`: matches ads with HTCondor's library. The benchmark asks this program over a pipe, so
// that both sides take turns in one run. SLOTS and JOBS are files of ads in the new syntax, one on each line.
//
// The program writes "ready PARSE_US OPTIMIZE_US": the microseconds that it takes to parse and to optimize the ad of a
// machine. Then it reads lines "HOW WHAT JOB":
//   HOW   parsed | optimized    the ads as parsed, or after the negotiator's optimization of Requirements
//   WHAT  match | ranks         the Requirements of both ads; or these, and the three ranks of each match
//   JOB   an index into JOBS
// It answers each line with "SECONDS MATCHES SUM": the processor time of matching the job with every slot, the number of
// matches, and the sum of all ranks.
#include <classad/classad_distribution.h>
#include <classad/matchClassad.h>
#include <strings.h>
#include <time.h>

#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using classad::ClassAd;
using classad::ExprTree;
using classad::MatchClassAd;
using Ads = std::vector<std::unique_ptr<ClassAd>>;

// The defaults of NEGOTIATOR_PRE_JOB_RANK and NEGOTIATOR_POST_JOB_RANK, as in src/negotiator/config.rs.
const char *const PRE_JOB_RANK =
    "(10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory";
const char *const POST_JOB_RANK =
    "(RemoteOwner =?= UNDEFINED) * "
    "(ifThenElse(isUndefined(KFlops), 1000, Kflops) - SlotID - 1.0e10*(Offline=?=True))";

[[noreturn]] void die(const std::string &why) {
    std::cerr << "answer: " << why << std::endl;
    std::exit(1);
}

double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

std::vector<std::string> lines(const char *path) {
    std::ifstream in(path);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    if (all.empty()) die(std::string("no ads in ") + path);
    return all;
}

Ads parse(const std::vector<std::string> &texts) {
    classad::ClassAdParser parser;
    Ads ads;
    for (const auto &text : texts) {
        std::unique_ptr<ClassAd> ad(parser.ParseClassAd(text, true));
        if (!ad) die("cannot parse " + text);
        ads.push_back(std::move(ad));
    }
    return ads;
}

// HTCondor's daemons add this function to the library. Without it, the machines' START would evaluate to ERROR.
bool member_of_string_list(const char *, const classad::ArgumentList &args, classad::EvalState &state,
                           classad::Value &result) {
    classad::Value wanted, members;
    std::string item, list;
    if (args.size() != 2 || !args[0]->Evaluate(state, wanted) || !args[1]->Evaluate(state, members) ||
        !wanted.IsStringValue(item) || !members.IsStringValue(list)) {
        result.SetErrorValue();
        return true;
    }
    bool found = false;
    for (size_t from = list.find_first_not_of(", "); from != std::string::npos && !found;) {
        const size_t to = std::min(list.find_first_of(", ", from), list.size());
        found = strcasecmp(list.substr(from, to - from).c_str(), item.c_str()) == 0;
        from = list.find_first_not_of(", ", to);
    }
    result.SetBooleanValue(found);
    return true;
}

struct Pool {
    Ads slots, jobs;
};

double optimize(Pool &pool) {
    std::string why;
    const double start = processor_seconds();
    for (auto &slot : pool.slots) {
        if (!MatchClassAd::OptimizeRightAdForMatchmaking(slot.get(), &why)) die(why);
    }
    const double seconds = processor_seconds() - start;
    for (auto &job : pool.jobs) {
        if (!MatchClassAd::OptimizeLeftAdForMatchmaking(job.get(), &why)) die(why);
    }
    return seconds;
}

class Ranks {
public:
    Ranks() : pre_(expression(PRE_JOB_RANK)), post_(expression(POST_JOB_RANK)) {}

    // The sum of the three ranks of a match. Both ads must still be in the MatchClassAd: the job's Rank refers to the slot.
    double sum(ClassAd *job, ClassAd *slot) {
        double rank = 0;
        if (!job->EvaluateAttrNumber("Rank", rank)) rank = 0;
        return number(*pre_, slot) + rank + number(*post_, slot);
    }

private:
    static std::unique_ptr<ExprTree> expression(const char *text) {
        classad::ClassAdParser parser;
        std::unique_ptr<ExprTree> tree(parser.ParseExpression(text, true));
        if (!tree) die(std::string("cannot parse ") + text);
        return tree;
    }

    static double number(ExprTree &tree, ClassAd *slot) {
        classad::Value value;
        double rank = 0;
        tree.SetParentScope(slot);
        return slot->EvaluateExpr(&tree, value) && value.IsNumber(rank) ? rank : 0;
    }

    std::unique_ptr<ExprTree> pre_, post_;
};

void answer(Pool &pool, Ranks &ranks, bool with_ranks, size_t which) {
    MatchClassAd match;
    ClassAd *job = pool.jobs.at(which % pool.jobs.size()).get();
    long matches = 0;
    double sum = 0;
    const double start = processor_seconds();
    // As in the negotiator, the job is the left ad throughout, and one slot after another is the right ad.
    match.ReplaceLeftAd(job);
    for (auto &slot : pool.slots) {
        match.ReplaceRightAd(slot.get());
        if (match.symmetricMatch()) {
            matches++;
            if (with_ranks) sum += ranks.sum(job, slot.get());
        }
        match.RemoveRightAd();
    }
    match.RemoveLeftAd();
    const double seconds = processor_seconds() - start;
    std::cout.precision(17);
    std::cout << seconds << ' ' << matches << ' ' << sum << std::endl;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) die("usage: answer SLOTS JOBS");
    std::string name = "stringListIMember";
    classad::FunctionCall::RegisterFunction(name, member_of_string_list);
    classad::SetOldClassAdSemantics(true);

    const auto slots = lines(argv[1]), jobs = lines(argv[2]);
    const double start = processor_seconds();
    Pool parsed{parse(slots), {}};
    const double parsing = processor_seconds() - start;
    parsed.jobs = parse(jobs);
    Pool optimized{parse(slots), parse(jobs)};
    const double optimizing = optimize(optimized);
    const double each = 1e6 / double(slots.size());
    std::cout << "ready " << parsing * each << ' ' << optimizing * each << std::endl;

    Ranks ranks;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string how, what;
        size_t job = 0;
        if (!(words >> how >> what >> job)) die("cannot understand " + line);
        answer(how == "parsed" ? parsed : optimized, ranks, what == "ranks", job);
    }
}
