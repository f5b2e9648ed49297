import asyncio, os, json
from itertools import takewhile
from pathlib import Path
from generator.corpora.sample import SampleCorpus
from generator.dedup import Repetition
from generator.single import SingleDocumentDialog
from generator.multi import MultiDocumentDialog
from generator.schema import Dialog
from judges.correctness import CorrectnessJudge
from tests.scripted import *

def shared(prompts):
    out=[]
    for i,p in enumerate(prompts):
        out.append(max((len(os.path.commonprefix([p,q])) for q in prompts[:i]), default=0))
    return out

QA=[("How long can I keep a book with a red dot on it?","You can keep it for two weeks, and it can't be renewed. Other books can be kept for four weeks and renewed three times."),
("And what happens if I bring it back late?","You pay a fee for each day that it is late, up to a limit. After thirty days the book counts as lost and you pay its price."),
("Do you mean the price it had when it was bought?","Yes, that is the price that the library paid, with a charge for handling added."),
("Sorry, I was asking about children, not adults. What do they pay?","Children under 16 pay half the fee for each day, and nothing at all in the school holidays."),
("Who decides if somebody can't afford it?","The head of the branch decides, and can waive the fee once a year if you ask in writing.")]
KS=kinds("direct","follow-up","clarification","correction","follow-up")
def script(reason=300):
    ask=[dict(question=q) for q,_ in QA]; ans=[dict(answer=a) for _,a in QA]
    return dict(ask=ask,answer=ans)
async def go(prog, judge, split, doc, focus):
    d=await prog.acall(doc,KS,focus,*split)
    assert d.end is None, d.end
    dlg=Dialog(id="d",corpus="c",algorithm="multi" if split else "single",split="train",document_ids=("x",),turns=d.turns,passages=d.passages,ended="complete",lm="m",prompt_version="v",seed=1)
    await asyncio.gather(*(judge.judge(dlg.grounding(t.turn), d.turns[:t.turn-1], t) for t in d.turns))
    return d
def report(m,name):
    ps=[c.prompt for c in m.calls]; s=shared(ps); 
    print(name, len(ps), sum(s)/sum(map(len,ps)), [(c.stage,len(c.prompt),len(c.prompt)-x) for c,x in zip(m.calls,s)][:12])
def test_it(tmp_path):
    docs=list(SampleCorpus(name="sample",licence="",source="",strict=False,max_broken=.1).read())
    for d in docs:
        m=Scripted(**script())
        m.run(lambda: go(SingleDocumentDialog(Repetition(.8)), CorrectnessJudge("m"), (), whole(d), d.text[200:500]))
        report(m, f"{d.id} {len(d.text.split())}")
    from generator.corpora.quac import QuacCorpus
    for d in list(QuacCorpus(name="q",licence="",source="",strict=False,max_broken=.1,path="/work/shared/data/quac/val_v0.2.sample.json",split="train",cache_dir="x",base_url="x").read())[:4]:
        m=Scripted(**script())
        m.run(lambda: go(SingleDocumentDialog(Repetition(.8)), CorrectnessJudge("m"), (), whole(d), d.text[200:500]))
        report(m, f"{d.id} {len(d.text.split())}")
